"""The settings tree: defaults, strictness, and messages whose advice works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from models.families import LAYOUTS, THRESHOLD, Family
from serving.settings import PROMPT_TOKENS, Settings, SettingsError, default_home, load, parse
from serving.settings import Family as SettingsFamily
from tests.unit.advice import ADVICE, advised, merged, nested

EMBEDDED = Path(__file__).parents[2] / "configs" / "embedded.yaml"


def test_an_empty_tree_is_complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path))
    settings = parse({})
    assert settings == Settings()
    assert settings.home == tmp_path
    assert settings.index_path == tmp_path / "index"
    assert settings.answer.context_passages == 8
    assert settings.gate.escalation_alarm == 0.30
    needed = settings.answer.context_tokens + settings.answer.max_reply_tokens + PROMPT_TOKENS
    assert needed <= settings.answer.window_tokens <= settings.models.synthesizer.max_model_len


def test_the_embedded_file_parses() -> None:
    settings, document = load(EMBEDDED)
    assert settings.answer.candidates == 24
    assert document["http_options"] == {"host": "127.0.0.1", "port": 8000}


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().timeout_s = 1.0  # type: ignore[misc]


def test_a_part_that_is_partly_written_keeps_the_rest() -> None:
    settings, default = (
        parse({"gate": {"agentic": {"queue": 3}}, "deployments": {"gateway": {"num_cpus": 1}}}),
        Settings(),
    )
    assert settings.gate.agentic == default.gate.agentic.model_copy(update={"queue": 3})
    assert settings.deployments.gateway == default.deployments.gateway.model_copy(update={"num_cpus": 1})
    assert settings.deployments.synthesizer == default.deployments.synthesizer


# Strictness


def levels(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every part of the tree."""
    yield path
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from levels(field.annotation, (*path, name))


@pytest.mark.parametrize("path", list(levels(Settings)), ids=lambda path: ".".join(path) or "top")
def test_an_unknown_key_is_refused_by_name(path: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match=re.escape(".".join((*path, "tyop"))) + ": Extra inputs"):
        parse(nested(path, {"tyop": 1}))


def test_where_gaps_are_kept_shapes_no_answer() -> None:
    settings = parse({"gaps": {"url": "postgresql://someone:secret@host/gaps", "questions": "hash"}})
    assert settings.version == Settings().version
    assert "secret" not in settings.model_dump_json() + repr(settings)
    with pytest.raises(SettingsError, match=r"gaps\.url: write postgresql://user@host/database"):
        parse({"gaps": {"url": "mysql://someone:secret@host/gaps"}})


def test_there_are_as_many_levels_as_the_tree_has() -> None:
    assert {("models", "synthesizer"), ("answer",), ("gate", "agentic"), ("deployments", "router")} <= set(
        levels(Settings)
    )
    assert len(list(levels(Settings))) == 28


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"models": {"synthesizer": {"dtype": "int4"}}}, "models.synthesizer.dtype"),
        ({"answer": {"window_fraction": 1.5}}, "answer.window_fraction"),
        ({"gate": {"agentic": {"queue": -1}}}, "gate.agentic.queue"),
        ({"deployments": {"router": {"max_queued_requests": 0}}}, "deployments.router.max_queued_requests"),
        ({"deployments": {"router": {"max_queued_requests": -1}}}, "deployments.router.max_queued_requests"),
        ({"deployments": {"router": {"max_ongoing_requests": 0}}}, "deployments.router.max_ongoing_requests"),
        ({"models": "small"}, "models"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(tree: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{re.escape(named)}: "):
        parse(tree)


def test_every_fault_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        parse({"tyop": 1, "timeout_s": 0, "models": {"embedder": {"threads": 0}}})
    assert all(named in str(caught.value) for named in ("tyop", "timeout_s", "models.embedder.threads"))


# Keys that contradict each other


@pytest.mark.parametrize(
    ("tree", "keys"),
    [
        ({"answer": {"window_tokens": 8_192}}, {"answer.window_tokens"}),
        ({"models": {"synthesizer": {"max_model_len": 2_048}}}, {"answer.window_tokens"}),
        ({"answer": {"window_fraction": 0.9}}, {"answer.window_fraction"}),
        # (4096 - 400 - 269) / 4096 = 0.8367: rounded to the nearest hundredth it would not fit
        ({"answer": {"window_fraction": 0.9, "max_reply_tokens": 269}}, {"answer.window_fraction"}),
        ({"answer": {"max_reply_tokens": 4_000}}, {"answer.window_tokens", "models.synthesizer.max_model_len"}),
        ({"gate": {"agentic": {"tokens": 4_095}}}, {"gate.agentic.tokens"}),
        ({"gate": {"single_pass": {"tokens": 1}}}, {"gate.single_pass.tokens"}),
        (
            {"answer": {"window_tokens": 9_000, "window_fraction": 1.0}, "gate": {"agentic": {"tokens": 9}}},
            {"answer.window_tokens", "answer.window_fraction", "gate.agentic.tokens"},
        ),
    ],
)
def test_a_contradiction_names_the_key_and_a_value_that_works(tree: dict[str, Any], keys: set[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(tree)
    message = str(caught.value)
    assert keys <= {key for key, _ in ADVICE.findall(message)}
    parse(merged(tree, advised(message)))


sizes = st.integers(1, 20_000)


@given(
    window=sizes,
    length=sizes,
    reply=sizes,
    fraction=st.floats(0.0, 1.0),
    single_pass=sizes,
    agentic=sizes,
)
def test_doing_what_the_message_says_always_works(
    *, window: int, length: int, reply: int, fraction: float, single_pass: int, agentic: int
) -> None:
    tree = {
        "models": {"synthesizer": {"max_model_len": length}},
        "answer": {"window_tokens": window, "max_reply_tokens": reply, "window_fraction": fraction},
        "gate": {"single_pass": {"tokens": single_pass}, "agentic": {"tokens": agentic}},
    }
    try:
        settings = parse(tree)
    except SettingsError as error:
        settings = parse(merged(tree, advised(str(error))))
    answer = settings.answer
    assert answer.context_tokens + answer.max_reply_tokens + PROMPT_TOKENS <= answer.window_tokens
    assert answer.window_tokens <= settings.models.synthesizer.max_model_len
    assert answer.window_tokens <= min(settings.gate.single_pass.tokens, settings.gate.agentic.tokens)


@pytest.mark.parametrize(
    ("part", "kind"),
    [("classifier", "ngram"), ("reranker", "cross_encoder"), ("verifier", "pair"), ("relevance", "pair")],
)
def test_a_kind_that_needs_a_model_says_how_to_name_one(part: str, kind: str) -> None:
    tree = {"models": {part: {"kind": kind}}}
    with pytest.raises(SettingsError, match=rf"set models\.{part}\.model, e\.g\. (path|shipped):") as caught:
        parse(tree)
    example = str(caught.value).rpartition("e.g. ")[2]
    assert parse(merged(tree, nested(("models", part, "model"), example)))


@pytest.mark.parametrize("part", ["reranker", "verifier", "relevance"])
def test_a_backend_of_a_cpu_is_refused_on_a_gpu(part: str) -> None:
    assert getattr(parse({"models": {part: {"backend": "openvino"}}}).models, part).backend == "openvino"
    with pytest.raises(SettingsError, match=rf"models\.{part}: .*set device to cpu, or backend to torch"):
        parse({"models": {part: {"backend": "openvino", "device": "cuda"}}})
    with pytest.raises(SettingsError, match=r"models\.embedder\.backend: Extra inputs"):
        parse({"models": {"embedder": {"backend": "openvino"}}})


ENDPOINT = {"base_url": "https://models.example/v1", "model": "large"}


@pytest.mark.parametrize(
    ("openai", "said"),
    [
        ({}, r"set models\.synthesizer\.openai\.base_url and models\.synthesizer\.openai\.model"),
        ({"base_url": "https://models.example/v1"}, r"set models\.synthesizer\.openai\.model"),
        ({**ENDPOINT, "key_env": "A", "key_file": "/b"}, "set key_env or key_file, not both"),
        ({**ENDPOINT, "base_url": "https://me:secret@models.example/v1"}, "without a name or key in it"),
        ({**ENDPOINT, "base_url": "models.example/v1"}, r"give an http\(s\) address"),
    ],
)
def test_an_endpoint_that_cannot_be_called_says_what_to_set(openai: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        parse({"models": {"synthesizer": {"kind": "openai", "openai": openai}}})
    assert "secret" not in str(caught.value)


def test_where_the_key_is_kept_shapes_no_answer() -> None:
    kept = [parse({"models": {"synthesizer": {"openai": {**ENDPOINT, **key}}}}).version
            for key in ({}, {"key_env": "MODELS_KEY"}, {"key_file": "/run/secrets/models"})]  # fmt: skip
    assert len(set(kept)) == 1


# Files


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", "is no YAML file"),
        ("a: \x01", "is no YAML file"),
        ("", "exactly one application"),
        ("[]", "exactly one application"),
        ("applications: []", "exactly one application"),
        ("applications: {}", "exactly one application"),
        ("applications: [1]", "exactly one application"),
        ("applications: [{}, {}]", "exactly one application"),
        ("applications: [{args: [1]}]", "settings: Input should be"),
        ("applications: [{args: {timeout: 3}}]", "timeout: Extra inputs"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=said):
        load(path)


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"does not exist; name a file such as configs/embedded\.yaml"):
        load(tmp_path / "none.yaml")
    with pytest.raises(SettingsError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(SettingsError, match="is no YAML file"):
        load(tmp_path / "binary.yaml")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(SettingsError, match="cannot be read: Permission denied"):
        load(EMBEDDED)


def test_a_file_without_args_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("applications: [{import_path: serving.app:build}]")
    assert load(path)[0] == Settings()


# Folders


def test_the_home_is_answer_home_then_the_cache_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("ANSWER_HOME", "~/mine")
    assert default_home() == tmp_path / "mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSWER_HOME", "here")
    assert default_home() == tmp_path / "here"
    monkeypatch.setenv("ANSWER_HOME", "")
    assert default_home() == tmp_path / "xdg" / "openindex-answer"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_home() == tmp_path / ".cache" / "openindex-answer"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_home() == tmp_path / ".cache" / "openindex-answer"


def test_folders_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.chdir(tmp_path)
    settings = parse({"home": "~/answers", "index": "texts"})
    assert (settings.home, settings.index_path) == (tmp_path / "me" / "answers", tmp_path / "texts")
    assert parse({"home": "~nobody-of-that-name/x"}).home.is_absolute()


# The version


def leaves(model: BaseModel, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, (*path, name))
        else:
            yield ".".join((*path, name)), value


def another(key: str, value: Any) -> Any:
    """A value that ``key`` may have, other than ``value``, and that contradicts no default."""
    named = {
        "models.synthesizer.dtype": "bfloat16",
        "models.embedder.dtype": "bfloat16",
        "models.reranker.dtype": "bfloat16",
        "models.verifier.dtype": "bfloat16",
        "models.relevance.dtype": "bfloat16",
        "models.reranker.long_document": "truncate",
        "models.verifier.long_document": "truncate",
        "models.verifier.kind": "pair",
        "models.verifier.family": "factcg",
        "models.verifier.threshold": 0.5,
        "models.relevance.kind": "pair",
        "models.classifier.kind": "ngram",
        "models.reranker.kind": "cross_encoder",
        "models.synthesizer.kind": "openai",
        "models.synthesizer.openai.base_url": "https://models.example/v1",
        "models.synthesizer.openai.constraint": "vllm",
        "models.synthesizer.openai.length_field": "max_completion_tokens",
        "answer.grammar": "free",
        "answer.on_fabrication": "drop",
        "answer.window_tokens": 4_000,
        "answer.temperature": 0.5,
        "models.synthesizer.tensor_parallel_size": 2,
        "models.synthesizer.kv_cache_gib": 0.25,
    }
    unset = {"device": "cuda", "gpu_memory_share": 0.5, "max_tokens": 512, "batch_tokens": 512, "backend": "openvino"}
    if key in named or key.rpartition(".")[2] in unset:
        return named.get(key, unset.get(key.rpartition(".")[2]))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value / 2 if isinstance(value, float) and value else 0.01 if isinstance(value, float) else "path:/models/x"


SHAPING = [
    (key, value)
    for key, value in leaves(Settings())
    if key.startswith(("answer.", "models.")) and "threads" not in key and ".key_" not in key
]


@pytest.mark.parametrize(("key", "value"), SHAPING, ids=[key for key, _ in SHAPING])
def test_the_version_changes_with_what_shapes_answers(key: str, value: Any) -> None:
    tree = nested(tuple(key.split(".")), another(key, value))
    if key == "models.synthesizer.kind":
        tree = merged(tree, {"models": {"synthesizer": {"openai": ENDPOINT}}})
    if key == "models.classifier.kind":
        tree = merged(tree, {"models": {"classifier": {"model": "shipped:classifier"}}})
    elif key.endswith(".kind"):
        tree = merged(tree, nested((*key.split(".")[:2], "model"), "path:/models/x"))
    if key == "models.embedder.device":
        tree["deployments"] = {"embedder": {"num_gpus": 0.1}}
    if key == "models.synthesizer.tensor_parallel_size":
        tree["models"]["synthesizer"]["kv_cache_gib"] = None
        tree["deployments"] = {
            "synthesizer": {"num_cpus": 0, "placement_group_bundles": [{"GPU": 1}, {"GPU": 1}]},
        }
    assert parse(tree).version != Settings().version


def test_the_version_is_the_same_on_every_machine(tmp_path: Path) -> None:
    elsewhere = parse(
        {"home": str(tmp_path), "index": str(tmp_path / "i"), "deployments": {"router": {"num_replicas": 2}}}
    )
    assert elsewhere.version == Settings().version
    assert re.fullmatch("[0-9a-f]{12}", elsewhere.version)


def test_a_file_and_its_tree_have_one_version() -> None:
    tree = yaml.safe_load(EMBEDDED.read_text())["applications"][0]["args"]
    assert parse(tree).version == load(EMBEDDED)[0].version


def test_one_half_of_retrieval_stays_on() -> None:
    assert not parse({"retrieval": {"dense": False}}).retrieval.dense
    with pytest.raises(SettingsError, match=r"retrieval.lexical and retrieval.dense are both false: set one"):
        parse({"retrieval": {"lexical": False, "dense": False}})


def test_how_often_an_index_is_looked_for_shapes_no_answer() -> None:
    assert parse({"retrieval": {"watch_s": 60}}).version == Settings().version
    assert parse({"retrieval": {"dense": False}}).version != Settings().version


# The verifier's family


def test_a_family_decides_at_its_own_threshold_unless_one_is_set() -> None:
    pair = {"kind": "pair", "model": "path:/models/minicheck"}
    for family in get_args(Family):
        own = parse({"models": {"verifier": {**pair, "family": family}}}).models.verifier.floor
        assert own == (THRESHOLD if family in LAYOUTS or family == "bespoke_minicheck" else 0.85)
        asked = {**pair, "family": family, "threshold": 0.7}
        assert parse({"models": {"verifier": asked}}).models.verifier.floor == 0.7


def test_the_families_are_those_that_there_are() -> None:
    assert get_args(SettingsFamily) == get_args(Family)
