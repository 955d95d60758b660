"""Replicas that follow the load: what Ray receives, and contradictions whose advice works."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.serve.config import AutoscalingConfig

from serving.settings import AutoscalingSettings, Settings, SettingsError, parse
from tests.unit.advice import ADVICE, advised, merged, nested

SCALED = sorted(set(Settings().deployments.named()) - {"router"})


def of(name: str, **scaling: Any) -> dict[str, Any]:
    return nested(("deployments", name, "autoscaling"), {"max_replicas": 4, **scaling})


@pytest.mark.parametrize("name", SCALED)
def test_every_deployment_but_the_router_may_scale(name: str) -> None:
    deployment = parse(of(name)).deployments.named()[name]
    assert deployment.autoscaling == AutoscalingSettings(max_replicas=4)
    assert deployment.most_replicas == 4


def test_our_keys_and_defaults_are_rays() -> None:
    ours = AutoscalingSettings(max_replicas=1).model_dump(exclude_none=True)
    rays = AutoscalingConfig(max_replicas=1)
    for key, value in ours.items():
        expected = 1.0 if key.endswith("scaling_factor") else getattr(rays, key)
        assert value == expected, key


@pytest.mark.parametrize(
    ("tree", "keys"),
    [
        (
            of("router", min_replicas=2, initial_replicas=3),
            {"deployments.router.autoscaling", "deployments.router.num_replicas"},
        ),
        (
            merged(of("gateway"), {"deployments": {"gateway": {"num_replicas": 2}}}),
            {"deployments.gateway.num_replicas"},
        ),
        (of("gateway", min_replicas=5), {"deployments.gateway.autoscaling.max_replicas"}),
        (of("gateway", initial_replicas=5), {"deployments.gateway.autoscaling.initial_replicas"}),
        (of("gateway", min_replicas=2, initial_replicas=1), {"deployments.gateway.autoscaling.initial_replicas"}),
        (of("reranker", upscale_delay_s=5), {"deployments.reranker.autoscaling.upscale_delay_s"}),
        (
            of("reranker", look_back_period_s=700),
            {f"deployments.reranker.autoscaling.{way}scale_delay_s" for way in ("up", "down")},
        ),
        (of("verifier", target_ongoing_requests=33), {"deployments.verifier.autoscaling.target_ongoing_requests"}),
    ],
)
def test_a_contradiction_names_the_key_and_a_value_that_works(tree: dict[str, Any], keys: set[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(tree)
    assert {key for key, _ in ADVICE.findall(str(caught.value))} == keys
    parse(merged(tree, advised(str(caught.value))))


def test_the_router_keeps_the_number_it_was_meant_to_start_with() -> None:
    tree = of("router", min_replicas=2, initial_replicas=3)
    with pytest.raises(SettingsError) as caught:
        parse(tree)
    router = parse(merged(tree, advised(str(caught.value)))).deployments.router
    assert (router.autoscaling, router.num_replicas) == (None, 3)


@pytest.mark.parametrize(
    ("key", "value"),
    [("min_replicas", 0), ("look_back_period_s", 10), ("upscale_delay_s", 0), ("tyop", 1), ("max_replicas", None)],
)
def test_a_value_that_cannot_be_is_refused_by_name(key: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=rf"deployments\.gateway\.autoscaling\.{key}: "):
        parse(of("gateway", **{key: value}))


replicas = st.integers(1, 6)
seconds = st.integers(1, 100)


@given(
    name=st.sampled_from(sorted(Settings().deployments.named())),
    fixed=st.none() | replicas,
    least=replicas,
    most=replicas,
    initial=st.none() | replicas,
    target=st.integers(1, 200),
    ongoing=st.integers(1, 100),
    look_back=st.integers(11, 100),
    up=seconds,
    down=seconds,
)
def test_doing_what_the_message_says_always_works(
    *,
    name: str,
    fixed: int | None,
    least: int,
    most: int,
    initial: int | None,
    target: int,
    ongoing: int,
    look_back: int,
    up: int,
    down: int,
) -> None:
    scaling = {
        "min_replicas": least,
        "max_replicas": most,
        "initial_replicas": initial,
        "target_ongoing_requests": target,
        "look_back_period_s": look_back,
        "upscale_delay_s": up,
        "downscale_delay_s": down,
    }
    chosen = {"autoscaling": scaling, "num_replicas": fixed, "max_ongoing_requests": ongoing}
    tree = nested(("deployments", name), chosen)
    try:
        settings = parse(tree)
    except SettingsError as error:
        settings = parse(merged(tree, advised(str(error))))
    deployment = settings.deployments.named()[name]
    if name == "router":
        assert deployment.autoscaling is None
        return
    agreed = deployment.autoscaling
    assert agreed is not None
    assert deployment.num_replicas is None
    assert agreed.min_replicas <= (agreed.initial_replicas or agreed.min_replicas) <= agreed.max_replicas
    assert agreed.look_back_period_s <= min(agreed.upscale_delay_s, agreed.downscale_delay_s)
    assert agreed.target_ongoing_requests <= deployment.max_ongoing_requests
    AutoscalingConfig(**agreed.model_dump(exclude_none=True))
