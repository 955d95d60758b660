"""Migrations, two processes that start at once, newer schemas, and databases that cannot be used."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from serving.gaps.database import FILE_NAME, Database, migrate
from serving.gaps.errors import GapsSchemaError, GapsUnavailableError
from serving.gaps.schema import metadata
from serving.gaps.settings import GapsSettings


def test_migrations_make_the_tables_that_the_code_knows(database: Database) -> None:
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert context.get_current_heads() == ("0001",)
        assert compare_metadata(context, metadata) == []


def test_migrating_again_changes_nothing(database: Database) -> None:
    with database.writing() as connection:
        migrate(connection, "here")
        migrate(connection, "here")
        assert MigrationContext.configure(connection).get_current_heads() == ("0001",)


def test_a_migration_that_fails_leaves_nothing_behind(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise sa.exc.OperationalError("CREATE INDEX", {}, Exception("no room for it"))

    broken = Database(url, home=tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("alembic.op.create_index", fail)
        with pytest.raises(GapsUnavailableError, match="no room for it"), broken.reading():
            pass
    with broken._begun(writing=False) as connection:
        assert sa.inspect(connection).get_table_names() == []
    with broken.reading() as connection:  # and the next use tries again
        assert "gaps" in sa.inspect(connection).get_table_names()
    broken.close()


def test_processes_that_start_at_once_wait_for_one_another(url: str, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from serving.gaps.database import Database\n"
        "database = Database(sys.argv[1], home=Path('.')); sys.stdin.readline()\n"
        "with database.writing() as connection: print('ready')"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=60) for process in processes]
    assert [out for out, _ in ended] == ["ready\n"] * 3, [err for _, err in ended]


def test_a_newer_schema_is_left_alone_and_the_error_names_the_fix(url: str, tmp_path: Path, database: Database) -> None:
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0999'")
    older = Database(url, home=tmp_path)
    said = r"0999.*upgrade this one, or let gaps\.url name another"
    with pytest.raises(GapsSchemaError, match=said) as caught, older.reading():
        pass
    older.close()
    assert caught.value.code == "gaps_schema_newer"
    assert not caught.value.retryable


def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    database = Database.of(GapsSettings(), home=tmp_path / "new")
    with database.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2  # FULL: a commit is on the disk
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    database.close()
    assert modes == dict.fromkeys((FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"), 0o600)


@pytest.mark.parametrize(
    "url", ["postgresql://someone:secret@127.0.0.1:1/gaps", "postgres://someone:secret@127.0.0.1:1/gaps"]
)
def test_a_database_that_is_down_is_named_without_its_password(url: str, tmp_path: Path) -> None:
    database = Database(url, home=tmp_path)
    with pytest.raises(GapsUnavailableError, match=r"127\.0\.0\.1") as caught, database.reading():
        pass
    assert "secret" not in caught.value.message
    assert caught.value.retryable


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    database = Database(None, home=tmp_path / "file" / "home")
    with pytest.raises(GapsUnavailableError, match="cannot be used now"), database.reading():
        pass


def test_urls_of_other_databases_are_refused_with_one_that_works() -> None:
    with pytest.raises(ValueError, match="postgresql://user@host/database"):
        GapsSettings(url="mysql://host/gaps")
    assert "secret" not in repr(GapsSettings(url="postgresql://someone:secret@host/gaps"))
