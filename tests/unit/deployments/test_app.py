"""The application that a Serve file builds, looked at before anything runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.serve import Application, Deployment
from ray.serve.schema import ServeDeploySchema

from serving.app import application, build
from serving.settings import Settings, SettingsError, parse

EMBEDDED = Path(__file__).parents[3] / "configs" / "embedded.yaml"
NAMES = {"Gateway", "Router", "Retriever", "Embedder", "Reranker", "Verifier", "Synthesizer"}


@pytest.fixture
def document() -> dict[str, Any]:
    return dict(yaml.safe_load(EMBEDDED.read_text()))


def bound(app: Application) -> Iterator[Deployment]:
    """Every deployment of an application, from the ingress on; one that is used twice comes twice."""
    deployment: Deployment = app._bound_deployment
    yield deployment
    for argument in (*deployment.init_args, *deployment.init_kwargs.values()):
        if isinstance(argument, Application):
            yield from bound(argument)


def deployments(app: Application) -> dict[str, Deployment]:
    return {deployment.name: deployment for deployment in bound(app)}


def test_the_embedded_file_builds_the_seven_deployments(document: dict[str, Any]) -> None:
    app = build(document["applications"][0]["args"])
    assert set(deployments(app)) == NAMES
    assert app._bound_deployment.name == "Gateway"


def test_each_deployment_is_bounded_watched_and_stopped(document: dict[str, Any]) -> None:
    for deployment in bound(build(document["applications"][0]["args"])):
        config = deployment._deployment_config
        assert 1 <= config.max_ongoing_requests <= 1_000, deployment.name
        assert 1 <= config.max_queued_requests <= 1_000, deployment.name  # -1, Ray's default, is no bound
        assert 0 < config.health_check_period_s <= 60, deployment.name
        assert config.health_check_timeout_s > 0, deployment.name
        assert 0 < config.graceful_shutdown_timeout_s <= 60, deployment.name
        assert config.autoscaling_config is None, deployment.name


def test_what_can_hang_reports_its_own_health() -> None:
    found = deployments(application(Settings()))
    for name in ("Synthesizer", "Retriever"):
        assert callable(getattr(found[name].func_or_class, "check_health", None)), name


@pytest.mark.parametrize("name", ["Synthesizer", "Embedder"])
def test_what_holds_a_model_lets_it_go(name: str) -> None:
    assert "__del__" in vars(deployments(application(Settings()))[name].func_or_class)


def test_all_share_one_machine_of_two_cores(document: dict[str, Any]) -> None:
    found = deployments(build(document["applications"][0]["args"])).values()
    assert sum(deployment.ray_actor_options["num_cpus"] for deployment in found) <= 2
    assert sum(deployment.ray_actor_options["num_gpus"] for deployment in found) == 0


def test_each_deployment_gets_what_its_settings_say() -> None:
    chosen = {
        "num_replicas": 2,
        "max_ongoing_requests": 3,
        "max_queued_requests": 4,
        "num_cpus": 0.5,
        "health_check_period_s": 5.0,
        "health_check_timeout_s": 6.0,
        "graceful_shutdown_timeout_s": 7.0,
    }
    plain = deployments(build({}))
    for name in NAMES:
        found = deployments(build({"deployments": {name.lower(): chosen}}))
        config = found[name]._deployment_config
        assert found[name].ray_actor_options["num_cpus"] == 0.5
        for key in set(chosen) - {"num_cpus"}:
            assert getattr(config, key) == chosen[key], (name, key)
        for other in NAMES - {name}:
            assert found[other]._deployment_config == plain[other]._deployment_config


def test_threads_reach_the_processes_that_compute() -> None:
    models = {"embedder": {"threads": 3}, "reranker": {"threads": 4}, "verifier": {"threads": 5}}
    found = deployments(build({"models": models}))
    for name, threads in {"Embedder": "3", "Reranker": "4", "Verifier": "5", "Gateway": "1"}.items():
        environment = found[name].ray_actor_options["runtime_env"]["env_vars"]
        assert environment["OMP_NUM_THREADS"] == threads
        assert environment["VLLM_NO_USAGE_STATS"] == "1"
        assert environment["VLLM_CONFIGURE_LOGGING"] == "0"


def test_parts_that_are_used_twice_are_one() -> None:
    embedders = [deployment for deployment in bound(build({})) if deployment.name == "Embedder"]
    assert len(embedders) > 1
    assert all(embedder is embedders[0] for embedder in embedders)


def test_each_deployment_holds_the_settings(tmp_path: Path) -> None:
    settings = parse({"home": str(tmp_path), "timeout_s": 12})
    for deployment in bound(application(settings)):
        assert deployment.init_args[0] is settings


def test_ray_takes_the_file_too(document: dict[str, Any]) -> None:
    schema = ServeDeploySchema(**document)
    assert [app.import_path for app in schema.applications] == ["serving.app:build"]
    assert [app.args for app in schema.applications] == [document["applications"][0]["args"]]


def test_wrong_settings_do_not_build() -> None:
    with pytest.raises(SettingsError, match=r"models\.synthesizer\.modle"):
        build({"models": {"synthesizer": {"modle": "x"}}})


def test_a_serve_file_is_built_with_the_environment_over_it(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = document["applications"][0]["args"]
    monkeypatch.setenv("ANSWER_ANSWER__CANDIDATES", "31")
    given = [
        argument
        for deployment in bound(build(args))
        for argument in deployment.init_args
        if isinstance(argument, Settings)
    ]
    assert len(given) >= len(NAMES)
    assert {settings.answer.candidates for settings in given} == {31}  # in every replica
    assert {settings.answer.per_source for settings in given} == {args["answer"]["per_source"]}
    monkeypatch.setenv("ANSWER_ANSWER__CANDIDATE", "31")
    with pytest.raises(SettingsError, match="write ANSWER_ANSWER__CANDIDATES"):
        build(args)
