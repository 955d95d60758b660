"""``answer config``, and ``--set`` and the environment on every command that reads settings."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from serving.answer.wire import Answer
from serving.cli import config, indexing, main, up
from serving.cli.console import Steps
from serving.cli.options import EMBEDDED
from serving.settings import Settings, load, parse
from tests.unit.gateway.fakes import answered


@pytest.fixture(autouse=True)
def _a_home_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("ANSWER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path / "home"))


def answer(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments), prog_name="answer", env=environment)


def faulty(tmp_path: Path) -> Path:
    path = tmp_path / "x.yaml"
    path.write_text("applications:\n- args:\n    tyop: 1\n    timeout_s: 0\n    answer: {candidate: 3}\n")
    return path


# show


def test_show_says_where_what_is_no_default_comes_from(tmp_path: Path) -> None:
    shown = answer("config", "show", "--set", "answer.max_sentences=3", ANSWER_TIMEOUT_S="7").stdout
    said = {line.split()[0]: line.partition("# ")[2] for line in shown.splitlines()}
    assert said["home:"] == "ANSWER_HOME"
    assert said["max_sentences:"] == "--set answer.max_sentences"
    assert said["timeout_s:"] == "ANSWER_TIMEOUT_S"
    assert said["candidates:"].startswith(f"{os.path.relpath(EMBEDDED)}:")
    assert said["half_life_days:"] == ""


def test_show_with_origin_says_it_of_defaults_too() -> None:
    lines = answer("config", "show", "--origin").stdout.splitlines()
    assert all("# " in line for line in lines if not line.rstrip().endswith(":"))
    assert any(line.endswith("# default") for line in lines)


@pytest.mark.parametrize("options", [(), ("--origin",), ("--yaml",)])
def test_what_is_shown_is_a_settings_tree_again(options: tuple[str, ...], tmp_path: Path) -> None:
    shown = answer("config", "show", "--set", "models.synthesizer.adapter=path: x # y", *options).stdout
    settings = parse(yaml.safe_load(shown))
    assert settings == main.chosen(None, ["models.synthesizer.adapter=path: x # y"]).settings
    assert settings.home == tmp_path / "home"


def test_plain_yaml_has_no_comments() -> None:
    assert "#" not in answer("config", "show", "--yaml").stdout


def test_show_as_json_has_settings_and_the_origin_of_each() -> None:
    document: dict[str, Any] = json.loads(answer("config", "show", "--json", "--set", "timeout_s=9").stdout)
    assert parse(document["settings"]).timeout_s == 9
    assert document["version"] == parse(document["settings"]).version
    assert document["origins"]["timeout_s"] == {"kind": "flag", "place": "--set timeout_s"}
    assert document["origins"]["home"] == {"kind": "environment", "place": "ANSWER_HOME"}
    assert document["origins"]["answer.recency_weight"] == {"kind": "default", "place": ""}
    assert document["origins"]["answer.candidates"]["kind"] == "file"


@pytest.mark.parametrize("options", [(), ("--origin",), ("--yaml",), ("--json",)])
def test_show_masks_passwords(options: tuple[str, ...]) -> None:
    result = answer("config", "show", "--set", "models.reranker.model=https://me:hunter2@h/x", *options)
    assert result.exit_code == 0
    assert "hunter2" not in result.output
    assert "********" in result.output


def test_json_and_yaml_exclude_each_other() -> None:
    assert answer("config", "show", "--json", "--yaml").exit_code == 2


def test_show_of_what_cannot_run_is_one_line(tmp_path: Path) -> None:
    result = answer("config", "show", "--config", str(faulty(tmp_path)))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_the_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    assert "tyop" in answer("config", "show", ANSWER_CONFIG=str(faulty(tmp_path))).stderr


# check


def test_check_says_that_a_file_can_run() -> None:
    result = answer("config", "check", str(EMBEDDED))
    assert (result.exit_code, result.stdout) == (0, f"{EMBEDDED}: can run\n")
    assert answer("config", "check").exit_code == 0


def test_check_says_every_fault_with_its_line_and_the_fix(tmp_path: Path) -> None:
    path = faulty(tmp_path)
    result = answer("config", "check", str(path))
    assert result.exit_code == 2
    *faults, last = result.stdout.splitlines()
    assert last == f"{path}: 3 faults"
    assert sorted(faults) == [
        f"answer.candidate: no such setting ({path}:5); write answer.candidates",
        f"timeout_s: Input should be greater than 0, and this is 0 ({path}:4); leave it out for the default, 60.0",
        f"tyop: no such setting ({path}:3); remove it; `answer config show` lists every key",
    ]


def test_check_as_json(tmp_path: Path) -> None:
    path = faulty(tmp_path)
    document = json.loads(answer("config", "check", str(path), "--json").stdout)
    assert (document["file"], document["ok"]) == (str(path), False)
    assert next(fault for fault in document["faults"] if fault["key"] == "timeout_s") == {
        "key": "timeout_s",
        "message": "Input should be greater than 0, and this is 0",
        "fix": "leave it out for the default, 60.0",
        "origin": f"{path}:4",
    }
    assert json.loads(answer("config", "check", "--json").stdout)["faults"] == []


@pytest.mark.parametrize("text", [None, "a: [1", "[]", "applications: [{args: [1]}]"])
def test_check_of_what_is_no_configuration(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "x.yaml"
    if text is not None:
        path.write_text(text)
    result = answer("config", "check", str(path))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert result.stdout.endswith(": 1 fault\n")


def test_check_counts_the_environment_and_flags_in() -> None:
    assert "ANSWER_TYOP" in answer("config", "check", ANSWER_TYOP="1").stdout
    assert answer("config", "check", "--set", "timeout_s=0").exit_code == 2


# What runs


def test_up_runs_the_effective_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[Settings, Any]] = []

    def fake_run(settings: Settings, _http: object, *, sets: object, **_: object) -> Answer:
        seen.append((settings, sets))
        return answered()

    monkeypatch.setattr(up, "run", fake_run)
    result = answer("up", "--ask", "x", "--set", "answer.max_sentences=3", ANSWER_TIMEOUT_S="7")
    assert result.exit_code == 0, result.output
    [(settings, sets)] = seen
    assert (settings.answer.max_sentences, settings.timeout_s, settings.home) == (3, 7, tmp_path / "home")
    assert settings.answer.candidates == load(EMBEDDED)[0].answer.candidates
    assert sets == ["answer.max_sentences=3"]


def test_the_index_that_up_builds_is_built_with_the_same_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(up.Catalog, "locate", lambda *_, **__: tmp_path)
    monkeypatch.setattr(indexing, "current", lambda _settings: None)

    def fake_process(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(up.subprocess, "run", fake_process)
    with pytest.raises(SystemExit):
        up.prepare(Settings(), Path("x.yaml"), Steps(), sets=["models.embedder.threads=1", "index=/x"])
    assert ran[0][3:] == [
        *(
            "index",
            "--installed",
            "--replace",
            "--config",
            "x.yaml",
            "--set=models.embedder.threads=1",
            "--set=index=/x",
        )
    ]


def test_index_and_search_use_the_effective_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Settings] = []
    monkeypatch.setattr(indexing, "index_sources", lambda _inputs, _options, settings, *_, **__: seen.append(settings))
    assert answer("index", str(tmp_path), "--set", f"index={tmp_path / 'i'}").exit_code == 0
    assert seen[0].index_path == tmp_path / "i"
    assert answer("search", "x", "--set", "tyop=1").exit_code == 2
    assert answer("search", "x", ANSWER_TYOP="1").exit_code == 2


def test_a_value_is_one_line_of_yaml() -> None:
    for value in ("a: b", "x\ny", "[1", "", "null", "0x1", None, 1.5, True, [], {}, ["a"] * 99):
        text = config._scalar(value)
        assert "\n" not in text
        assert yaml.safe_load(text) == value
