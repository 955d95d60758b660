"""The database under the backlog: one writer at a time, durable commits, its tables brought up to date on first use."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from serving.gaps.errors import GapsSchemaError, GapsUnavailableError, UnstorableGapError
from serving.gaps.settings import GapsSettings

FILE_NAME = "gaps.sqlite3"
BUSY_S = 5
SQLITE_BUSY_S = 15
"""Its writers are not served in turn: one may have to wait for many of another's, each flushed to the disk."""
STATEMENT_MS = 10_000
_WRITERS = 0x6F69_6761_7073  # names PostgreSQL's advisory lock: "oigaps"


class Database:
    """SQLite or PostgreSQL, by URL. Methods block: call them in a thread. They raise
    :class:`~serving.gaps.errors.GapsUnavailableError` when the database cannot be used now, and
    :class:`~serving.gaps.errors.GapsSchemaError` when a newer release has written it.
    """

    def __init__(self, url: str | None, *, home: Path) -> None:
        """``url`` null is the SQLite file in ``home``. Nothing is opened before the first use."""
        self._url = sa.make_url(url) if url else sa.URL.create("sqlite", database=str(home / FILE_NAME))
        if self._url.drivername in ("postgres", "postgresql"):
            self._url = self._url.set(drivername="postgresql+psycopg")
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self._engine = _sqlite(self._url) if self.is_sqlite else _postgresql(self._url)
        self._lock = threading.Lock()
        self._prepared = False

    @classmethod
    def of(cls, settings: GapsSettings, *, home: Path) -> Database:
        return cls(settings.url.get_secret_value() if settings.url else None, home=home)

    def __str__(self) -> str:
        return self._url.render_as_string(hide_password=True)

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that excludes every other writer, here and in other processes. Committed means durable."""
        self._prepare()
        with self._translated(), self._begun(writing=True) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the database."""
        self._prepare()
        with self._translated(), self._begun(writing=False) as connection:
            yield connection

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _begun(self, *, writing: bool) -> Iterator[sa.Connection]:
        with self._engine.connect().execution_options(writing=writing) as connection, connection.begin():
            if writing and not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITERS)))
            yield connection

    def _prepare(self) -> None:
        with self._lock:
            if self._prepared:
                return
            with self._translated():
                if self.is_sqlite:
                    _make_private(Path(str(self._url.database)))
                # Others that start now wait for the writers' lock, and then find the tables up to date.
                with self._begun(writing=True) as connection:
                    migrate(connection, str(self))
            self._prepared = True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DataError, IntegrityError) as error:
            raise UnstorableGapError(f"the backlog refuses a row: {_said(error)}") from error
        except (SQLAlchemyError, OSError) as error:
            raise GapsUnavailableError(f"the backlog at {self} cannot be used now: {_said(error)}") from error


def migrate(connection: sa.Connection, name: str) -> None:
    """Brings the tables up to this release, in the connection's transaction: all of it or nothing."""
    config = Config()
    config.set_main_option("script_location", "serving.gaps:migrations")
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    known = {script.revision for script in scripts.walk_revisions()}
    found = set(MigrationContext.configure(connection).get_current_heads())
    if found - known:
        raise GapsSchemaError(
            f"the backlog at {name} was written by a newer release (schema {', '.join(sorted(found - known))}): "
            "upgrade this one, or let gaps.url name another database"
        )
    if found != set(scripts.get_heads()):
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _make_private(path: Path) -> None:
    """The file holds what people asked: it is made for its owner's eyes; SQLite's files beside it take its mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _sqlite(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(url, connect_args={"timeout": SQLITE_BUSY_S})

    @sa.event.listens_for(engine, "connect")
    def _configure(dbapi: Any, _record: Any) -> None:
        dbapi.isolation_level = None  # the driver would begin transactions late, and never for DDL: we do
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            dbapi.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # Taking the writers' lock at once: a reader that turns writer later may be refused instead of waiting.
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def _postgresql(url: sa.URL) -> sa.Engine:
    given = url.query.get("options", "")
    options = f"{given if isinstance(given, str) else ' '.join(given)} -c statement_timeout={STATEMENT_MS}".strip()
    return sa.create_engine(
        url,
        pool_size=2,
        max_overflow=2,
        pool_timeout=BUSY_S,
        pool_pre_ping=True,
        connect_args={"connect_timeout": BUSY_S, "options": options, "tcp_user_timeout": STATEMENT_MS},
    )


def _said(error: Exception) -> str:
    """The driver's own words on one line, without the statement and its values."""
    return " ".join(str(getattr(error, "orig", None) or error).split())[:300]
