"""Shares of GPUs: contradictions are named, and following the advice leaves every GPU within its memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.settings import Settings, SettingsError, parse
from tests.unit.advice import advised, merged, nested

ONE_GPU: dict[str, Any] = {
    "gpus": 1,
    "models": {
        "synthesizer": {"kv_cache_gib": None, "gpu_memory_utilization": 0.7},
        "verifier": {"kind": "pair", "model": "path:/m", "device": "cuda", "gpu_memory_share": 0.2},
    },
    "deployments": {"synthesizer": {"num_gpus": 0.75}, "verifier": {"num_gpus": 0.2}},
}
TWO_GPUS: dict[str, Any] = {
    "models": {"synthesizer": {"kv_cache_gib": None, "gpu_memory_utilization": 0.9, "tensor_parallel_size": 2}},
    "deployments": {"synthesizer": {"placement_group_bundles": [{"CPU": 1, "GPU": 1}, {"GPU": 1}]}},
}


def but(tree: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    return merged(tree, nested(tuple(key.split(".")), value))


def test_shares_that_agree() -> None:
    assert parse(ONE_GPU).deployments.synthesizer.num_gpus == 0.75
    assert parse(TWO_GPUS).deployments.synthesizer.bundle_gpus == 2


def test_shares_that_make_exactly_one_agree() -> None:
    tree = merged(ONE_GPU, {"deployments": {"synthesizer": {"num_gpus": 0.7}, "verifier": {"num_gpus": 0.3}}})
    assert parse(tree)


@pytest.mark.parametrize(
    ("tree", "advice"),
    [
        (but(ONE_GPU, "deployments.verifier.num_gpus", 0.3), {"deployments.synthesizer.num_gpus": 0.7}),
        (
            but(ONE_GPU, "deployments.verifier.num_replicas", 2),
            {"deployments.synthesizer.num_gpus": 0.6, "models.synthesizer.gpu_memory_utilization": 0.6},
        ),
        (
            but(ONE_GPU, "deployments.verifier.autoscaling", {"max_replicas": 2}),
            {"deployments.synthesizer.num_gpus": 0.6, "models.synthesizer.gpu_memory_utilization": 0.6},
        ),
        (but(ONE_GPU, "deployments.verifier.num_replicas", 6), {"gpus": 2}),
        (
            but(ONE_GPU, "models.synthesizer.gpu_memory_utilization", 0.9),
            {"models.synthesizer.gpu_memory_utilization": 0.75},
        ),
        (but(ONE_GPU, "models.verifier.gpu_memory_share", 0.5), {"models.verifier.gpu_memory_share": 0.2}),
        (but(ONE_GPU, "models.synthesizer.kv_cache_gib", 4), {"models.synthesizer.kv_cache_gib": None}),
        (
            but(ONE_GPU, "deployments.verifier.num_gpus", 0),
            {"deployments.verifier.num_gpus": 0.1, "models.verifier.gpu_memory_share": 0.1},
        ),
        (but(ONE_GPU, "models.verifier.device", "cpu"), {"deployments.verifier.num_gpus": 0}),
        (but(ONE_GPU, "deployments.gateway.num_gpus", 0.01), {"deployments.gateway.num_gpus": 0}),
        # the reference verifier has no model to put on a GPU
        (but(ONE_GPU, "models.verifier.kind", "overlap"), {"deployments.verifier.num_gpus": 0}),
        (
            but(but(ONE_GPU, "deployments.synthesizer.num_gpus", 0.7), "retrieval.device", "cuda"),
            {"deployments.retriever.num_gpus": 0.1},
        ),
        (but(TWO_GPUS, "models.synthesizer.tensor_parallel_size", 4), {"models.synthesizer.tensor_parallel_size": 2}),
        (but(TWO_GPUS, "deployments.synthesizer.num_gpus", 1), {"deployments.synthesizer.num_gpus": 0}),
        (but(TWO_GPUS, "deployments.synthesizer.num_cpus", 2), {"deployments.synthesizer.num_cpus": 1}),
        (
            but(TWO_GPUS, "deployments.synthesizer.placement_group_bundles", None),
            {"models.synthesizer.tensor_parallel_size": 1},
        ),
        (
            but(TWO_GPUS, "deployments.synthesizer.placement_group_bundles", [{"CPU": 1}]),
            {
                "models.synthesizer.tensor_parallel_size": 1,
                "deployments.synthesizer.placement_group_bundles": None,
            },
        ),
        (but(TWO_GPUS, "gpus", 1), {"gpus": 2}),
    ],
)
def test_a_contradiction_names_the_key_and_a_value_that_works(tree: dict[str, Any], advice: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(tree)
    said = advised(str(caught.value))
    expected: dict[str, Any] = {}
    for key, value in advice.items():
        expected = but(expected, key, value)
    assert said == expected
    parse(merged(tree, said))


def test_a_sum_that_is_too_much_says_what_makes_it() -> None:
    with pytest.raises(SettingsError, match=r"verifier 0\.3 \+ synthesizer 0\.75 = 1\.05 GPUs, more than gpus 1"):
        parse(but(ONE_GPU, "deployments.verifier.num_gpus", 0.3))


def test_a_cluster_that_grows_has_no_sum() -> None:
    assert parse(merged(but(ONE_GPU, "deployments.verifier.num_replicas", 9), {"gpus": None}))


@pytest.mark.parametrize(
    ("bundles", "said"),
    [
        ([{"gpu": 1}], r"placement_group_bundles\.0\.gpu: Extra inputs"),
        ([{"GPU": 2}], r"placement_group_bundles\.0\.GPU: "),
        ([{}], r"placement_group_bundles\.0: a bundle reserves something"),
        ([], r"placement_group_bundles: "),
    ],
)
def test_a_bundle_that_cannot_be(bundles: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse(but({}, "deployments.synthesizer.placement_group_bundles", bundles))


def test_one_gpu_is_the_most_that_a_replica_may_share() -> None:
    with pytest.raises(SettingsError, match=r"^deployments\.synthesizer\.num_gpus: "):
        parse(but(ONE_GPU, "deployments.synthesizer.num_gpus", 2))


hundredths = st.integers(0, 100).map(lambda n: n / 100)
shares = st.integers(1, 100).map(lambda n: n / 100)
devices = st.sampled_from(["cpu", "cuda"])
counts = st.integers(1, 4)
ENCODERS = ("embedder", "reranker", "verifier")


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    models: dict[str, Any] = {
        name: {"device": draw(devices), "gpu_memory_share": draw(st.none() | shares)} for name in ENCODERS
    }
    models["reranker"] |= {"kind": draw(st.sampled_from(["embedding", "cross_encoder"])), "model": "path:/m"}
    models["verifier"] |= {"kind": draw(st.sampled_from(["overlap", "pair"])), "model": "path:/m"}
    models["synthesizer"] = {
        "gpu_memory_utilization": draw(shares),
        "kv_cache_gib": draw(st.none() | st.just(1)),
        "tensor_parallel_size": draw(counts),
    }
    deployments: dict[str, Any] = {
        name: {"num_gpus": draw(st.just(0) | hundredths), "num_replicas": draw(counts)}
        for name in (*ENCODERS, "retriever", "router", "synthesizer")
    }
    bundle = st.fixed_dictionaries({"CPU": st.integers(1, 2), "GPU": st.integers(0, 1)})
    deployments["synthesizer"] |= {
        "num_cpus": draw(st.integers(0, 3)),
        "placement_group_bundles": draw(st.none() | st.lists(bundle, min_size=1, max_size=3)),
    }
    return {
        "models": models,
        "deployments": deployments,
        "retrieval": {"device": draw(devices)},
        "gpus": draw(st.none() | st.integers(1, 3)),
    }


@given(trees())
def test_doing_what_the_message_says_always_works(tree: dict[str, Any]) -> None:
    try:
        settings = parse(tree)
    except SettingsError as error:
        settings = parse(merged(tree, advised(str(error))))
    assert_no_gpu_is_promised_twice(settings)


def assert_no_gpu_is_promised_twice(settings: Settings) -> None:
    deployments, models = settings.deployments, settings.models
    if settings.gpus is not None:
        total = sum(one.num_gpus * one.most_replicas for one in deployments.named().values())
        total += deployments.synthesizer.bundle_gpus * deployments.synthesizer.most_replicas
        assert total <= settings.gpus + 1e-6
    if deployments.synthesizer.num_gpus:
        assert models.synthesizer.gpu_memory_utilization <= deployments.synthesizer.num_gpus + 1e-6
    for name in ENCODERS:
        reserved = deployments.named()[name].num_gpus
        if reserved:
            assert getattr(models, name).device == "cuda"
            assert (getattr(models, name).gpu_memory_share or 0.0) <= reserved + 1e-6
    assert bool(deployments.retriever.num_gpus) == (settings.retrieval.device == "cuda")
    assert max(1, deployments.synthesizer.bundle_gpus) == models.synthesizer.tensor_parallel_size


@pytest.mark.parametrize("name", ENCODERS)
def test_a_forward_pass_holds_a_row(name: str) -> None:
    tree = nested(("models", name), {"max_tokens": 512, "batch_tokens": 500})
    with pytest.raises(SettingsError, match=rf"set models\.{name}\.batch_tokens to 512") as caught:
        parse(tree)
    assert parse(merged(tree, advised(str(caught.value))))
