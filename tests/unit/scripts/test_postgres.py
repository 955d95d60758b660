"""scripts/postgres.sh: the command it runs, the server beside it, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

SCRIPT = Path(__file__).parents[3] / "scripts" / "postgres.sh"


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name != "ANSWER_TEST_POSTGRES_URL"}
    return {**plain, "TMPDIR": str(tmp_path), **more}


def test_a_server_that_is_named_is_used_and_the_exit_status_is_the_commands(tmp_path: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "run", "--", "sh", "-c", 'echo "$ANSWER_TEST_POSTGRES_URL"; exit 7'],
        capture_output=True,
        text=True,
        env=environment(tmp_path, ANSWER_TEST_POSTGRES_URL="postgresql://there/db"),
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "postgresql://there/db\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["run"], ["run", "--"], ["start", "--", "true"]])
def test_wrong_use_is_explained(arguments: list[str]) -> None:
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "run -- COMMAND" in done.stderr


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder that the server's user may enter, which pytest's is not when root runs it."""
    with tempfile.TemporaryDirectory(prefix="answer-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_the_server_dies_with_the_script_also_of_kill_9(folder: Path) -> None:
    process = subprocess.Popen(
        [SCRIPT, "run", "--", "sh", "-c", 'echo "$ANSWER_TEST_POSTGRES_URL"; read line'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    if not url:
        process.communicate("\n")
        pytest.skip("there is no PostgreSQL here: apt-get install postgresql")
    at = sa.make_url(url).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(at)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT 1")).scalar_one() == 1
    engine.dispose()
    process.send_signal(signal.SIGKILL)
    process.communicate("\n")
    deadline = time.monotonic() + 30
    while _listens(int(at.port or 0)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _listens(int(at.port or 0))


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
