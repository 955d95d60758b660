"""Each test's own database: SQLite always, PostgreSQL where ``ANSWER_TEST_POSTGRES_URL`` names a server."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from serving.gaps.database import Database
from serving.gaps.settings import GapsSettings
from serving.gaps.store import GapStore


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/gaps.sqlite3"
        return
    server = os.environ.get("ANSWER_TEST_POSTGRES_URL")
    if not server:
        pytest.skip("needs PostgreSQL: run `scripts/postgres.sh run -- scripts/test unit`")
    name = f"gaps_{uuid.uuid4().hex}"
    at = sa.make_url(server).set(drivername="postgresql+psycopg")
    admin = sa.create_engine(at, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    try:
        yield at.set(database=name, drivername="postgresql").render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        admin.dispose()


@pytest.fixture
def settings() -> GapsSettings:
    return GapsSettings()


@pytest.fixture
def database(url: str, tmp_path: Path) -> Iterator[Database]:
    made = Database(url, home=tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(database: Database, settings: GapsSettings) -> GapStore:
    return GapStore(database, settings)
