import os
from pathlib import Path

import pytest

from models.cpu import cpu_flags, resolve_dtype
from models.vllm_options import VllmOptions, prepare_environment


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        ("avx2 fma", "float32"),
        ("avx2 avx512f", "float32"),
        ("avx512f avx512_bf16", "bfloat16"),
        ("avx2 amx_bf16", "bfloat16"),
        ("", "float32"),
        (None, "auto"),
    ],
)
def test_auto_is_what_the_cpu_is_quick_at(flags: str | None, dtype: str) -> None:
    assert resolve_dtype("auto", flags=flags) == dtype


def test_a_dtype_that_is_named_stands() -> None:
    assert resolve_dtype("float16", flags="avx512_bf16") == "float16"


def test_flags_are_words() -> None:
    assert "\n" not in cpu_flags()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing is set, and what a test sets is undone."""
    for name in (
        "HF_HUB_OFFLINE",
        "OMP_NUM_THREADS",
        "VLLM_ENABLE_V1_MULTIPROCESSING",
        "VLLM_LOGGING_LEVEL",
        "VLLM_NO_USAGE_STATS",
    ):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


def test_what_a_person_set_stands(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    environment.setenv("OMP_NUM_THREADS", "5")
    prepare_environment(VllmOptions(Path("model")))
    assert os.environ["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert os.environ["VLLM_NO_USAGE_STATS"] == os.environ["HF_HUB_OFFLINE"] == "1"
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"


def test_threads_that_are_asked_for_replace_those_that_ray_sets(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("OMP_NUM_THREADS", "1")
    prepare_environment(VllmOptions(Path("model"), threads=3))
    assert os.environ["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize(("cores", "threads"), [(1, "1"), (2, "1"), (16, "15")])
def test_a_core_is_left_to_the_others(environment: pytest.MonkeyPatch, cores: int, threads: str) -> None:
    environment.setattr(os, "sched_getaffinity", lambda _process: set(range(cores)))
    prepare_environment(VllmOptions(Path("model")))
    assert os.environ["OMP_NUM_THREADS"] == threads


def test_rays_workers_are_asked_for_by_name() -> None:
    engine = pytest.importorskip("models.vllm_engine")
    assert "distributed_executor_backend" not in engine._arguments(VllmOptions(Path("model"), tensor_parallel_size=2))
    spread = VllmOptions(Path("model"), tensor_parallel_size=2, executor="ray", kv_cache_gib=None)
    assert engine._arguments(spread)["distributed_executor_backend"] == "ray"
    assert "kv_cache_memory_bytes" not in engine._arguments(spread)


@pytest.mark.usefixtures("environment")
def test_the_engine_keeps_its_processes_for_more_devices() -> None:
    prepare_environment(VllmOptions(Path("model"), tensor_parallel_size=2))
    assert "VLLM_ENABLE_V1_MULTIPROCESSING" not in os.environ
