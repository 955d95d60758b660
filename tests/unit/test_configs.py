"""Every target's file, read by our settings and by Ray's schema, and what Ray receives of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.serve import Application, Deployment
from ray.serve.schema import ServeDeploySchema

from models.catalog import ADAPTERS
from serving.app import application
from serving.deployments.base import encoder_options
from serving.settings import Settings, load

CONFIGS = Path(__file__).parents[2] / "configs"
FILES = sorted(CONFIGS.glob("*.yaml"))
by_name = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def bound(app: Application) -> Iterator[Deployment]:
    deployment: Deployment = app._bound_deployment
    yield deployment
    for argument in (*deployment.init_args, *deployment.init_kwargs.values()):
        if isinstance(argument, Application):
            yield from bound(argument)


def deployments(settings: Settings) -> dict[str, Deployment]:
    return {deployment.name.lower(): deployment for deployment in bound(application(settings))}


def written(path: Path) -> dict[str, Any]:
    """The file's settings tree, as it stands there."""
    return dict(yaml.safe_load(path.read_text())["applications"][0]["args"])


def test_there_are_three_targets() -> None:
    assert [path.stem for path in FILES] == ["cluster", "embedded", "gpu"]


@by_name
def test_our_settings_and_rays_schema_take_the_file(path: Path) -> None:
    _, document = load(path)
    schema = ServeDeploySchema(**document)
    assert [app.import_path for app in schema.applications] == ["serving.app:build"]
    assert [app.args for app in schema.applications] == [written(path)]
    assert schema.model_dump(exclude_unset=True)["http_options"] == document["http_options"]


@by_name
def test_ray_receives_what_the_file_says(path: Path) -> None:
    found = deployments(load(path)[0])
    assert len(found) == 7
    for name, said in written(path).get("deployments", {}).items():
        config, actor = found[name]._deployment_config, found[name].ray_actor_options
        for key in ("max_ongoing_requests", "max_queued_requests", "health_check_timeout_s"):
            assert getattr(config, key) == said.get(key, getattr(config, key)), (name, key)
        assert actor["num_cpus"] == said["num_cpus"]
        assert actor["num_gpus"] == said.get("num_gpus", 0)
        if scaling := said.get("autoscaling"):
            assert {key: getattr(config.autoscaling_config, key) for key in scaling} == scaling, name
        else:
            assert (config.autoscaling_config, config.num_replicas) == (None, said["num_replicas"])
        replica = found[name]._replica_config
        assert replica.placement_group_bundles == said.get("placement_group_bundles")
        assert replica.placement_group_strategy == said.get("placement_group_strategy")


def test_in_the_cluster_all_but_the_router_scale() -> None:
    found = deployments(load(CONFIGS / "cluster.yaml")[0])
    fixed = {name for name, one in found.items() if one._deployment_config.autoscaling_config is None}
    assert fixed == {"router"}


def test_in_the_cluster_the_synthesizer_spans_the_gpus_of_its_placement_group() -> None:
    settings, _ = load(CONFIGS / "cluster.yaml")
    synthesizer = deployments(settings)["synthesizer"]
    gpus = [bundle.get("GPU") for bundle in synthesizer._replica_config.placement_group_bundles]
    assert gpus == [1.0] * settings.models.synthesizer.tensor_parallel_size
    assert len(gpus) > 1


def test_on_one_gpu_all_shares_fit_and_are_kept() -> None:
    settings, _ = load(CONFIGS / "gpu.yaml")
    assert settings.gpus == 1
    assert sum(one.ray_actor_options["num_gpus"] for one in deployments(settings).values()) == pytest.approx(1.0)
    chosen = settings.models
    taken = [chosen.synthesizer.gpu_memory_utilization]
    for name in ("embedder", "reranker", "verifier"):
        options = encoder_options(getattr(chosen, name), settings.deployments.named()[name])
        assert options["device"] == "cuda"
        taken.append(options["memory_share"])
    assert sum(taken) < 1.0
    assert settings.retrieval.device == "cuda"


@pytest.mark.parametrize("target", ["gpu", "cluster"])
def test_models_are_named_not_carried(target: str) -> None:
    models = load(CONFIGS / f"{target}.yaml")[0].models
    assert "MiniCheck" in str(models.verifier.model)
    assert "bge-reranker" in str(models.reranker.model)
    assert models.synthesizer.model.startswith("hub:")


def test_a_share_that_is_not_named_is_the_deployments() -> None:
    settings, _ = load(CONFIGS / "gpu.yaml")
    unnamed = settings.models.verifier.model_copy(update={"gpu_memory_share": None})
    assert encoder_options(unnamed, settings.deployments.verifier)["memory_share"] == 0.1
    assert encoder_options(Settings().models.verifier, Settings().deployments.verifier)["memory_share"] is None


def test_the_default_judges_go_by_the_thresholds_of_the_shipped_weights() -> None:
    shipped = json.loads((ADAPTERS / "encoder" / "config.json").read_text())["calibration"]
    models = load(CONFIGS / "embedded.yaml")[0].models
    assert (models.verifier.model, models.relevance.model) == ("shipped:encoder", "shipped:encoder")
    assert models.verifier.threshold == shipped["verifier"]["threshold"]
    assert models.relevance.threshold == shipped["relevance"]["threshold"]
