"""Layers of settings: who wins, where each value came from, and what is refused with which advice."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from serving.layering.environment import RESERVED, nearest_variable, settings_in, variable
from serving.layering.faults import ConfigurationError
from serving.layering.files import SettingsFile, read_file
from serving.layering.keys import allowed_at, choices, dotted, names, nearest, sections
from serving.layering.layers import Effective, layered
from serving.layering.origins import Origin, Origins
from serving.settings import Settings, parse

ROOT = Path(__file__).parents[3]
EMBEDDED = ROOT / "configs" / "embedded.yaml"


def written(tree: Any) -> SettingsFile:
    return SettingsFile("x.yaml", tree)


def origin_of(found: Effective, key: str) -> str:
    return str(found.origins.of(tuple(key.split("."))))


def value_of(found: Effective, key: str) -> Any:
    return next(value for path, value, _ in found.values() if dotted(path) == key)


def faults(file: SettingsFile | None, environ: dict[str, str], *flags: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        layered(file, environ, flags)
    assert str(caught.value) == "; ".join(map(str, caught.value.faults))
    return [str(fault) for fault in caught.value.faults]


# Who wins


LAYERS = st.fixed_dictionaries({}, optional={name: st.integers(1, 999) for name in ("file", "environment", "flag")})


@given(LAYERS)
def test_the_last_layer_that_says_something_wins_and_is_named(said: dict[str, int]) -> None:
    key = "models.synthesizer.max_num_seqs"
    file = written({"models": {"synthesizer": {"max_num_seqs": said["file"]}}} if "file" in said else {})
    environ = {variable(key): str(said["environment"])} if "environment" in said else {}
    flags = [f"{key}={said['flag']}"] if "flag" in said else []
    found = layered(file, environ, flags)
    last = next((one for one in ("flag", "environment", "file") if one in said), "default")
    assert found.settings.models.synthesizer.max_num_seqs == said.get(last, 8)
    assert found.origins.of(tuple(key.split("."))).kind == last


def test_of_two_flags_the_later_wins() -> None:
    assert layered(None, {}, ["timeout_s=3", "timeout_s=4"]).settings.timeout_s == 4


def test_nothing_said_is_the_defaults() -> None:
    found = layered(None, {})
    assert found.settings == Settings()
    assert {origin.kind for _, _, origin in found.values()} == {"default"}


def listed_keys() -> list[str]:
    return [dotted(path) for path, _, _ in layered(read_file(EMBEDDED), {}).values()]


def test_values_lists_every_key_once_and_a_part_that_is_not_there_as_one() -> None:
    listed = listed_keys()
    absent = {key for key in listed if key in sections()}
    assert absent == {key for key in listed if key.endswith((".autoscaling", ".direct_per_tenant"))}
    held = [key for key in names() if not any(key.startswith(f"{part}.") for part in absent)]
    assert [key for key in listed if key not in absent] == held


def test_a_part_that_is_not_there_can_be_begun() -> None:
    name = "deployments.retriever"
    found = layered(None, {variable(f"{name}.num_replicas"): "null"}, [f"{name}.autoscaling={{max_replicas: 3}}"])
    scaling = found.settings.deployments.retriever.autoscaling
    assert scaling is not None
    assert scaling.max_replicas == 3


@pytest.mark.parametrize("key", listed_keys())
def test_every_key_can_be_set_from_the_environment_and_by_a_flag(key: str) -> None:
    value = value_of(layered(read_file(EMBEDDED), {}), key)
    text = "null" if value is None else str(value)
    by_environment = layered(read_file(EMBEDDED), {variable(key): text})
    by_flag = layered(read_file(EMBEDDED), {}, [f"{key}={text}"])
    assert by_environment.settings == by_flag.settings == layered(read_file(EMBEDDED), {}).settings
    assert origin_of(by_environment, key) == variable(key)
    assert origin_of(by_flag, key) == f"--set {key}"


def test_a_section_is_laid_over_what_is_there() -> None:
    file = written({"models": {"reranker": {"threads": 3}}})
    found = layered(file, {"ANSWER_MODELS__RERANKER": "{kind: cross_encoder, model: 'path:/x'}"})
    reranker = found.settings.models.reranker
    assert (reranker.kind, reranker.model, reranker.threads) == ("cross_encoder", "path:/x", 3)
    assert origin_of(found, "models.reranker.kind") == "ANSWER_MODELS__RERANKER"
    assert origin_of(found, "models.reranker.threads") == "x.yaml"


def test_a_part_of_a_section_wins_over_the_section_in_any_order_of_the_environment() -> None:
    environ = {"ANSWER_GATE__AGENTIC__QUEUE": "9", "ANSWER_GATE": "{agentic: {queue: 3}}"}
    assert layered(None, environ).settings.gate.agentic.queue == 9


def test_the_layers_do_not_change_the_file() -> None:
    file = read_file(EMBEDDED)
    layered(file, {}, ["models.synthesizer.max_num_seqs=2"])
    assert file.tree == yaml.safe_load(EMBEDDED.read_text())["applications"][0]["args"]


def test_what_runs_in_another_process_is_what_was_layered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = layered(read_file(EMBEDDED), {"ANSWER_HOME": str(tmp_path), "ANSWER_TIMEOUT_S": "7"})
    sent = pickle.dumps(found.settings)
    monkeypatch.setenv("ANSWER_HOME", "/elsewhere")
    assert pickle.loads(sent) == found.settings
    assert pickle.loads(sent).home == tmp_path


# Values


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("timeout_s=1e2", 100.0),
        ("models.synthesizer.max_num_seqs=010", 10),
        ("models.synthesizer.enforce_eager=off", False),
        ("models.synthesizer.model=2048", "2048"),
        ("models.synthesizer.model=[a]", "[a]"),
        ("models.synthesizer.model=path:/a=b", "path:/a=b"),
        ("models.synthesizer.adapter=null", None),
        ("models.synthesizer.threads=null", None),
        ("index=/data/index", "/data/index"),
    ],
)
def test_text_becomes_what_the_key_wants(flag: str, value: Any) -> None:
    assert value_of(layered(None, {}, [flag]), flag.partition("=")[0]) == value


def test_an_empty_variable_sets_nothing() -> None:
    assert layered(None, {"ANSWER_TIMEOUT_S": ""}).settings == Settings()


@given(st.sampled_from(names()), st.text(max_size=12))
def test_whatever_is_said_there_are_settings_or_faults(key: str, text: str) -> None:
    found: Effective | ConfigurationError
    try:
        found = layered(None, {}, [f"{key}={text}"])
    except ConfigurationError as error:
        found = error
    if isinstance(found, Effective):
        assert origin_of(found, key) == f"--set {key}"
    else:
        assert all(fault.key and fault.message for fault in found.faults)


# Faults


def test_an_unknown_variable_is_refused_with_the_one_that_was_meant() -> None:
    for wrong, meant in (
        ("ANSWER_MODELS_SYNTHESIZER_DTYPE", "ANSWER_MODELS__SYNTHESIZER__DTYPE"),
        ("ANSWER_MODELS__SYNTHESISER__DTYPE", "ANSWER_MODELS__SYNTHESIZER__DTYPE"),
        ("ANSWER_MAX_MODEL_LEN", "ANSWER_MODELS__SYNTHESIZER__MAX_MODEL_LEN"),
        ("ANSWER_TIMOUT_S", "ANSWER_TIMEOUT_S"),
        ("ANSWER_HOMES", "ANSWER_HOME"),
        ("ANSWER_URLS", "ANSWER_URL"),
    ):
        assert faults(None, {wrong: "1"}) == [f"{wrong}: no such setting; write {meant}"]
    assert nearest_variable("ANSWER_XYZZY") is None
    assert "unset ANSWER_XYZZY" in faults(None, {"ANSWER_XYZZY": "1"})[0]


def test_an_unknown_flag_is_refused_with_the_key_that_was_meant() -> None:
    assert faults(None, {}, "max_model_len=3") == [
        "max_model_len: no such setting (--set max_model_len); write models.synthesizer.max_model_len"
    ]
    assert faults(None, {}, "answer.candidate=3")[0].endswith("write answer.candidates")
    assert faults(None, {}, "timeout_s") == ["timeout_s: has no value (--set timeout_s); write --set timeout_s=VALUE"]
    assert "lists every key" in faults(None, {}, "xyzzy=3")[0]


def test_a_fault_does_not_repeat_a_password() -> None:
    said = faults(None, {}, "timeout_s=postgresql://me:hunter2@db")
    assert said[0].startswith("timeout_s: Input should be a valid number")
    assert "hunter2" not in said[0]


def test_an_unknown_key_of_the_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("applications:\n- args:\n    answer:\n      candidate: 3\n    tyop: {a: 1}\n")
    said = faults(read_file(path), {})
    assert said == [
        f"answer.candidate: no such setting ({path}:4); write answer.candidates",
        f"tyop: no such setting ({path}:5); remove it; `answer config show` lists every key",
    ]


def test_a_value_out_of_range_names_what_set_it_and_the_default() -> None:
    assert faults(None, {"ANSWER_TIMEOUT_S": "0"}) == [
        "timeout_s: Input should be greater than 0, and this is '0' (ANSWER_TIMEOUT_S); "
        "leave it out for the default, 60.0"
    ]


def test_a_value_that_is_no_section() -> None:
    said = faults(written({"models": "small"}), {"ANSWER_MODELS__SYNTHESIZER__DTYPE": "auto"})
    assert len(said) == 1
    assert said[0].startswith("models: Input should be a valid dictionary")
    assert "x.yaml" in said[0]
    assert "no YAML" in faults(None, {}, "models.reranker={kind")[0]


def test_keys_that_contradict_each_other_are_faults_of_their_own() -> None:
    said = faults(None, {}, "answer.window_tokens=9000", "gate.agentic.tokens=3")
    assert [one.partition(" is ")[0] for one in said] == ["answer.window_tokens", "gate.agentic.tokens"]
    assert said[0].endswith("(--set answer.window_tokens); set answer.window_tokens to 4096")


def test_every_fault_of_every_layer_is_said_at_once() -> None:
    said = faults(written({"tyop": 1, "timeout_s": 0}), {"ANSWER_XYZZY": "1"}, "xyzzy=1", "max_body_bytes=0")
    assert [one.partition(":")[0] for one in said] == ["ANSWER_XYZZY", "xyzzy", "timeout_s", "max_body_bytes", "tyop"]


def test_args_that_are_no_mapping() -> None:
    assert faults(written([1]), {"ANSWER_TIMEOUT_S": "3"})[0].startswith("settings: Input should be")


# Variables that are ours and no settings, and those that are not ours at all


def test_what_is_reserved_sets_nothing_and_is_no_key() -> None:
    assert not [name for name in RESERVED if allowed_at(tuple(name.removeprefix("ANSWER_").lower().split("__")))]
    assert layered(None, dict.fromkeys(RESERVED, "x")).settings == Settings()


def test_every_variable_that_this_project_speaks_of_is_a_setting_or_reserved() -> None:
    known = {*RESERVED, *map(variable, (*names(), *sections()))}
    files = [
        path
        for folder in ("serving", "models", "scripts", "tests/cluster", "tests/weights", "configs")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in (".py", ".sh", ".yaml", "") and "__pycache__" not in path.parts
    ]
    assert len(files) > 100
    spoken = {
        name: path
        for path in files
        for name in re.findall(r"\bANSWER_[A-Z][A-Z_]*[A-Z]\b", path.read_text(errors="replace"))
    }
    assert {name: path for name, path in spoken.items() if name not in known} == {}


def test_a_kubernetes_service_of_our_name_is_no_fault() -> None:
    links = {
        "ANSWER_SERVICE_HOST": "10.0.0.1",
        "ANSWER_SERVICE_PORT": "8000",
        "ANSWER_SERVICE_PORT_HTTP": "8000",
        "ANSWER_PORT": "tcp://10.0.0.1:8000",
        "ANSWER_PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "ANSWER_PORT_8000_TCP_PROTO": "tcp",
        "ANSWER_PORT_8000_TCP_PORT": "8000",
        "ANSWER_PORT_8000_TCP_ADDR": "10.0.0.1",
        "ANSWER_SERVE_SVC_SERVICE_HOST": "10.0.0.2",
    }
    assert list(settings_in(links)) == []
    assert layered(None, links).settings == Settings()


# Keys


def test_nearest_is_a_key() -> None:
    assert nearest("models.synthesizer.dtypes") == "models.synthesizer.dtype"
    assert nearest("model.embedder.dtype") == "models.embedder.dtype"
    assert nearest("queue") in names()
    assert nearest("xyzzy") is None


def test_choices_are_what_may_be_written() -> None:
    assert choices(("models", "embedder", "dtype")) == ["auto", "float32", "bfloat16", "float16"]
    assert choices(("answer", "grammar")) == ["quotes", "markers", "structured", "free"]
    assert choices(("models", "synthesizer", "enforce_eager")) == ["true", "false"]
    assert choices(("timeout_s",)) == []
    assert choices(("none",)) == []


# Origins


def test_a_value_hides_the_origins_below_it_and_a_mapping_does_not() -> None:
    origins = Origins()
    file, flag = Origin("file", "x.yaml:1"), Origin("flag", "--set a")
    origins.put(("a", "b"), 1, file)
    origins.put(("a",), {"c": 2}, flag)
    assert (origins.of(("a", "b")), origins.of(("a", "c"))) == (file, flag)
    origins.put(("a",), None, flag)
    assert origins.of(("a", "b")) == flag
    assert origins.within(("a",)) == [flag]


# Files


def test_lines_are_those_of_the_keys() -> None:
    file = read_file(EMBEDDED)
    text = EMBEDDED.read_text().splitlines()
    assert len(file.lines) > 20
    assert all(text[line - 1].strip().startswith(f"{path[-1]}:") for path, line in file.lines.items())


def test_a_key_that_stands_twice_is_a_fault_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("applications:\n- args:\n    timeout_s: 3\n    timeout_s: 4\n")
    assert faults(read_file(path), {}) == [
        f"timeout_s: stands twice, and only the last one counts ({path}:4); remove one"
    ]


def test_anchors_and_merges_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "x-few: &few\n  max_ongoing_requests: 3\n"
        "applications:\n- args:\n    deployments:\n      router:\n        <<: *few\n        num_replicas: 2\n"
    )
    found = layered(read_file(path), {})
    assert found.settings.deployments.router.max_ongoing_requests == 3
    assert origin_of(found, "deployments.router.max_ongoing_requests") == f"{path}:6"
    assert origin_of(found, "deployments.router.num_replicas") == f"{path}:8"


def test_layering_a_file_alone_is_parsing_it() -> None:
    assert layered(read_file(EMBEDDED), {}).settings == parse(read_file(EMBEDDED).tree)
