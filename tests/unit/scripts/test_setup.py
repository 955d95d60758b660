"""What the set-up decides before it installs anything: each refusal is one line that names the fix."""

import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "scripts" / "setup.sh"
TOOLS = ["awk", "bash", "cat", "cut", "dirname", "du", "env", "find", "flock", "ls", "mkdir", "rm", "sha256sum"]


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A PATH of its own, with the tools of the set-up, 100 GiB of free disk, Linux on x86-64 and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (folder / tool).symlink_to(found)
    put(folder / "df", "echo header; echo disk 0 0 $((100 * 1024 * 1024)) 0% /")
    put(folder / "uname", "echo Linux x86_64")
    return folder


def put(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return path


def set_up(bin_folder: Path, venv: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment |= {"PATH": str(bin_folder), "ANSWER_VENV": str(venv)}
    command = [str(bin_folder / "bash"), str(SETUP), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)


def refusal(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 1
    assert result.stdout == ""
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, result.stderr
    return errors[0]


def test_no_python(bin_folder: Path, tmp_path: Path) -> None:
    error = refusal(set_up(bin_folder, tmp_path / "venv"))
    assert "no Python 3.11 found; install it" in error


def test_python_of_another_version_is_passed_over(bin_folder: Path, tmp_path: Path) -> None:
    put(bin_folder / "python3", "exit 1")
    assert "no Python 3.11 found" in refusal(set_up(bin_folder, tmp_path / "venv"))


def test_named_python_of_another_version(bin_folder: Path, tmp_path: Path) -> None:
    other = put(tmp_path / "python3.12", "exit 1")
    error = refusal(set_up(bin_folder, tmp_path / "venv", PYTHON=str(other)))
    assert f"PYTHON={other} is not a working Python 3.11" in error


def test_python_without_venv(bin_folder: Path, tmp_path: Path) -> None:
    put(bin_folder / "python3.11", '[[ "$*" != *ensurepip* ]]')
    assert "python3.11 lacks venv or ensurepip; install them" in refusal(set_up(bin_folder, tmp_path / "venv"))


def test_little_disk(bin_folder: Path, tmp_path: Path) -> None:
    put(bin_folder / "df", "echo header; echo disk 0 0 $((2 * 1024 * 1024)) 0% /")
    error = refusal(set_up(bin_folder, tmp_path / "venv"))
    assert "2 GiB are free" in error
    assert "set ANSWER_VENV to a folder on a larger disk" in error


def test_other_platform(bin_folder: Path, tmp_path: Path) -> None:
    put(bin_folder / "uname", "echo Darwin arm64")
    assert "Darwin arm64" in refusal(set_up(bin_folder, tmp_path / "venv"))


def test_a_folder_of_other_things_is_left_alone(bin_folder: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    venv.mkdir()
    (venv / "thesis.txt").write_text("dear")
    assert "is not empty, and not a Python 3.11 environment" in refusal(set_up(bin_folder, venv))
    assert [path.name for path in venv.iterdir()] == ["thesis.txt"]


def test_unknown_argument(bin_folder: Path, tmp_path: Path) -> None:
    assert "unknown argument: --tests" in refusal(set_up(bin_folder, tmp_path / "venv", "--tests"))
