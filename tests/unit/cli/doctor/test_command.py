"""``answer doctor`` as a person runs it, on this machine and on made-up ones."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from serving.cli import client, main
from serving.cli.doctor import command, network
from serving.cli.doctor.examine import CHECKS, WITHOUT_SETTINGS, examine
from serving.cli.doctor.findings import Finding, Status, Subject, ok, problem, warning
from serving.cli.doctor.machine import Machine, ThisMachine
from serving.cli.doctor.report import as_json, lines, worst
from serving.gateway.http import create_api
from serving.settings import Settings
from tests.unit.cli.doctor.fakes import FakeMachine
from tests.unit.cli.test_cli import free_port, listening
from tests.unit.gateway.fakes import FakeBackend


@pytest.fixture(autouse=True)
def _a_home_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("ANSWER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path / "home"))


def answer(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments), prog_name="answer", env={"COLUMNS": "100"})


def on(monkeypatch: pytest.MonkeyPatch, machine: FakeMachine) -> None:
    monkeypatch.setattr(command, "ThisMachine", lambda: machine)


LOCK = str(command.ROOT / "configs" / "locks" / "cpu.lock")


def well() -> FakeMachine:
    machine = FakeMachine()
    machine.files[LOCK] = "torch==2.13.0+cpu\n"
    return machine


def test_all_but_the_index_is_well_and_that_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, well())
    result = answer("doctor", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["status"] == "warning"
    assert [one["check"] for one in document["checks"] if one["status"] != "ok"] == ["index"]
    assert {tuple(one) for one in document["checks"]} == {("check", "status", "message", "fix")}


def test_a_problem_is_exit_code_1_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = well()
    machine.refused[8000] = "taken"
    on(monkeypatch, machine)
    result = answer("doctor")
    assert result.exit_code == 1
    assert result.stderr == ""
    assert "PROBLEM   port.http" in result.stdout
    assert "→ stop what listens on it (ss -ltnp 'sport = :8000'), or answer up --port 8001\n" in result.stdout
    assert result.stdout.endswith("1 problem, 1 warning\n")


def test_the_names_of_checks_are_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, well())
    assert [one["check"] for one in json.loads(answer("doctor", "--json").stdout)["checks"]] == [
        *("config", "python.version", "platform", "cpu.cores", "cpu.features", "cpu.dtype.synthesizer"),
        *("cpu.dtype.embedder", "memory", "disk.home", "disk.tmp", "disk.shm", "limits.files", "packages.lock"),
        *("packages.importable", "packages.torch", "gpu", "models.synthesizer", "models.embedder"),
        *("models.verifier", "models.relevance", "index"),
        *("port.http", "port.ray", "environment"),
    ]


def test_the_ports_are_those_of_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("http_options: {port: 9009}\napplications: [{args: {}}]")
    machine = well()
    machine.refused[9009] = "taken"
    on(monkeypatch, machine)
    result = answer("doctor", "--config", str(path))
    assert result.exit_code == 1
    assert f"answer up --config {path} --port 9010" in result.stdout


def test_settings_that_cannot_run_are_a_problem_each_and_the_rest_is_still_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("applications: [{args: {tyop: 1, timeout_s: 0}}]")
    on(monkeypatch, well())
    result = answer("doctor", "--json", "--config", str(path))
    assert result.exit_code == 1
    checks = json.loads(result.stdout)["checks"]
    assert [one["fix"] for one in checks if one["check"] == "config"] == [f"answer config check {path}"] * 2
    assert {"python.version", "packages.torch", "config.skipped"} <= {one["check"] for one in checks}
    assert not {"memory", "index"} & {one["check"] for one in checks}
    assert answer("doctor", "--config", str(tmp_path / "none.yaml")).exit_code == 1
    assert answer("doctor", "--set", "tyop=1").exit_code == 1


def test_what_is_checked_without_settings_is_checked_at_all() -> None:
    assert set(WITHOUT_SETTINGS) < {name for name, _ in CHECKS}


def test_a_check_that_fails_itself_is_a_problem_and_stops_no_other() -> None:
    def broken(_machine: Machine, _subject: Subject) -> Iterator[Finding]:
        yield ok("a.first", "well")
        raise RuntimeError("it\nbroke")

    def whole(_machine: Machine, _subject: Subject) -> Iterator[Finding]:
        yield ok("b", "well")

    findings = list(examine(FakeMachine(), Subject(Settings()), [("a", broken), ("b", whole)]))
    assert [(one.check, one.status) for one in findings] == [
        ("a.first", Status.OK),
        ("a", Status.PROBLEM),
        ("b", Status.OK),
    ]
    assert "RuntimeError it broke" in findings[1].message


def test_no_check_needs_anything_of_the_machine_to_be_there() -> None:
    """Every check says something of a machine of which nothing can be read."""
    nothing = FakeMachine(files={}, versions={}, programs={}, absent=("torch", "ray"))
    for name, check in CHECKS:
        found = list(examine(nothing, Subject(Settings(), url="http://127.0.0.1:1"), [(name, check)]))
        assert found, name
        assert not [one for one in found if "failed itself" in one.message]


# On this machine


def test_this_machine_is_examined_without_a_traceback_and_without_heavy_imports(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from serving.cli.main import app\n"
        "try:\n    app(['doctor', '--json'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'torch', 'ray', 'vllm', 'transformers'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [one for one in json.loads(done.stdout)["checks"] if "failed itself" in one["message"]]
    assert not (tmp_path / "home").exists()  # nothing is made


def test_a_running_server() -> None:
    api = create_api(FakeBackend(), default_timeout_s=9, max_body_bytes=10_000, max_question_chars=100)
    with listening(api) as url:
        result = answer("doctor", "--json", "--url", url)
        machine = ThisMachine()
        port = int(url.rpartition(":")[2])
        taken = list(network.ports(machine, Subject(Settings(), http={"host": "127.0.0.1", "port": port})))
    server = {one["check"]: one for one in json.loads(result.stdout)["checks"] if one["check"].startswith("server.")}
    assert {one["status"] for one in server.values()} == {"ok"}
    assert {"server.health", "server.version", "server.search"} < set(server)
    assert taken[0].message == f"an answer server runs at 127.0.0.1:{port}"


def test_a_server_that_is_not_there() -> None:
    result = answer("doctor", "--json", "--url", f"http://127.0.0.1:{free_port()}")
    assert result.exit_code == 1
    [finding] = [one for one in json.loads(result.stdout)["checks"] if one["check"].startswith("server.")]
    assert finding["fix"] == "answer up, or name another with --url"


@pytest.mark.parametrize("url", ["nonsense", "http://", "http://[::", "http://127.0.0.1:99999"])
def test_a_url_that_is_none_is_a_finding(url: str) -> None:
    result = answer("doctor", "--json", "--url", url)
    assert result.exit_code == 1
    assert "failed itself" not in result.stdout


def test_a_server_that_hangs_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(client.ServerError, match=r"did not answer in 0\.2 s"):
            client.probe(f"http://127.0.0.1:{silent.getsockname()[1]}", "/healthz", timeout_s=0.2)
        assert time.monotonic() - began < 10


def test_the_seam_of_this_machine(tmp_path: Path) -> None:
    machine: Machine = ThisMachine()
    assert machine.python == sys.version_info[:3]
    assert machine.read("/proc/self/cgroup") is not None
    assert machine.read(str(tmp_path)) is None
    assert machine.disk(tmp_path / "not" / "yet").total > 0
    assert machine.writable(tmp_path / "not" / "yet")
    (tmp_path / "file").touch()
    assert not machine.writable(tmp_path / "file" / "home")
    assert machine.version_of("pydantic")
    assert machine.version_of("no-such-distribution") is None
    assert machine.has_module("json")
    assert not machine.has_module("no_such_module")
    assert machine.has_file("json", "decoder.py")
    assert not machine.has_file("json", "lib*.so")
    assert not machine.has_file("no_such_module", "*")
    assert machine.run("no-such-program") is None
    assert machine.run("false") is None
    assert machine.run("echo", "x") == "x\n"
    assert machine.cores() >= 1
    assert machine.open_files() > 0


def test_ports_of_this_machine() -> None:
    machine = ThisMachine()
    port = free_port()
    assert machine.refusal("127.0.0.1", port) == machine.refusal("localhost", port) == ""
    assert machine.refusal("203.0.113.1", port) not in ("", "taken")
    assert machine.refusal("no.such.host.invalid", port) not in ("", "taken")
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        assert machine.refusal("127.0.0.1", holder.getsockname()[1]) == "taken"


# The report

FINDINGS = [
    ok("a", "well"),
    warning("b.longer", "word " * 30, "x" * 90),
    problem("c", "line\x1b[31m\nline", "mend it"),
]


def test_lines_are_aligned_wrapped_and_plain() -> None:
    said = list(lines(FINDINGS, 80))
    assert said[0] == "ok        a         well"
    assert all(len(line) <= 80 for line in said if "→" not in line)
    assert f"{' ' * 20}→ {'x' * 90}" in said  # whole, to be copied
    assert not [line for line in said if "\x1b" in line]
    assert said[-1] == "3 checks: 1 problem, 1 warning"


def test_the_worst_finding_is_the_status() -> None:
    assert [worst(FINDINGS), worst(FINDINGS[:2]), worst(FINDINGS[:1]), worst([])] == ["problem", "warning", "ok", "ok"]
    assert json.loads(as_json(FINDINGS))["status"] == "problem"


def test_the_checkout_is_found() -> None:
    assert (command.ROOT / "scripts" / "setup.sh").is_file()
