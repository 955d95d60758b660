"""Packages against a lock, and GPUs, on machines made up for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from serving.cli.doctor import gpu, packages
from serving.cli.doctor.findings import Status, Subject
from serving.settings import Settings, parse
from tests.unit.cli.doctor.fakes import FakeMachine, found

LOCK = """# made by a tool
ray==2.60.0 \\
    --hash=sha256:aa==bb \\
    # via x==1
torch==2.13.0+cpu ; sys_platform == 'linux' \\
"""
REPO = Path("/repo")
OK, WARNING, PROBLEM = Status.OK, Status.WARNING, Status.PROBLEM


def subject(root: Path | None = REPO, **tree: Any) -> Subject:
    return Subject(parse(tree), root=root)


def on_gpu(**shares: float) -> dict[str, Any]:
    """Settings that compute on a GPU, each deployment with its share of one."""
    return {
        "models": {"synthesizer": {"kv_cache_gib": None}, "embedder": {"device": "cuda"}},
        "deployments": {name: {"num_gpus": share} for name, share in shares.items()},
    }


def machine(versions: dict[str, str], **others: Any) -> FakeMachine:
    return FakeMachine(versions=versions, files={"/repo/configs/locks/cpu.lock": LOCK}, **others)


def test_packages_as_locked() -> None:
    findings = found(packages.lock, machine({"ray": "2.60.0", "torch": "2.13.0+cpu", "more": "1"}), subject())
    assert [(one.check, one.status) for one in findings.values()] == [("packages.lock", OK)]
    assert "all 2 packages" in findings["packages.lock"].message


def test_packages_that_differ_or_are_missing() -> None:
    findings = found(packages.lock, machine({"ray": "2.59.0"}), subject())
    assert findings["packages.missing"].status is PROBLEM
    assert "1 of 2 are not installed: torch" in findings["packages.missing"].message
    assert findings["packages.versions"].status is WARNING
    assert "ray 2.59.0 (locked 2.60.0)" in findings["packages.versions"].message
    fix = findings["packages.missing"].fix
    assert fix == "rm -f /repo/.venv/.answer-*; /repo/scripts/setup.sh --torch-index"


def test_an_environment_elsewhere_is_named_to_the_set_up() -> None:
    findings = found(packages.lock, machine({}, prefix=Path("/my envs/x")), subject())
    assert findings["packages.missing"].fix == (
        "rm -f '/my envs/x'/.answer-*; ANSWER_VENV='/my envs/x' /repo/scripts/setup.sh --torch-index"
    )


def test_many_are_counted_and_some_named() -> None:
    lock = "".join(f"package-{n}==1\n" for n in range(20))
    fake = FakeMachine(versions={}, files={"/repo/configs/locks/cpu.lock": lock})
    message = found(packages.lock, fake, subject())["packages.missing"].message
    assert message.startswith("20 of 20 are not installed: ")
    assert message.endswith(" and 14 more")


def test_no_lock_is_no_fault() -> None:
    for where in (None, Path("/elsewhere")):
        assert found(packages.lock, machine({}), subject(where))["packages.lock"].status is OK


def test_a_gpu_target_is_held_against_its_own_lock() -> None:
    fake = FakeMachine(versions={}, files={"/repo/configs/locks/gpu.lock": "vllm==0.32.0\n"})
    finding = found(packages.lock, fake, subject(**on_gpu(embedder=1)))["packages.missing"]
    assert finding.fix.endswith("install --no-deps --require-hashes -r /repo/configs/locks/gpu.lock")


def test_the_real_lock_is_read_whole() -> None:
    text = (Path(__file__).parents[4] / "configs" / "locks" / "cpu.lock").read_text()
    fake = FakeMachine(versions={}, files={"/repo/configs/locks/cpu.lock": text})
    count = len(re.findall(r"^[a-z0-9].*==", text, re.MULTILINE))  # as scripts/setup.sh counts
    assert f"{count} of {count} are not" in found(packages.lock, fake, subject())["packages.missing"].message


def test_modules_that_are_not_there() -> None:
    finding = found(packages.importable, FakeMachine(absent=("vllm", "faiss")), subject())["packages.importable"]
    assert (finding.status, finding.message) == (PROBLEM, "cannot be imported: faiss, vllm")
    assert found(packages.importable, FakeMachine(), subject(None))["packages.importable"].status is OK
    lost = found(packages.importable, FakeMachine(absent=("ray",)), subject(None))["packages.importable"]
    assert lost.fix == "clone the repository and run scripts/run there"


def test_what_breaks_the_cpu_build_of_torch() -> None:
    fake = machine({"torch": "2.13.0+cpu", "torchvision": "0.28.0", "torchaudio": "2.13.0"})
    finding = found(packages.breakers, fake, subject())["packages.torch"]
    assert finding.status is PROBLEM
    assert finding.fix == "/repo/.venv/bin/python -m pip uninstall -y torchvision torchaudio"
    with_cuda = machine({"torch": "2.13.0", "torchvision": "0.28.0"})
    assert found(packages.breakers, with_cuda, subject())["packages.torch"].status is OK
    assert found(packages.breakers, machine({}), subject())["packages.torch"].status is PROBLEM


# GPUs

WITH_GPU = on_gpu(synthesizer=0.6, embedder=0.4)
SMI = "NVIDIA H200, 143771, 570.86.15\n"


def test_gpus_are_counted_wherever_they_are_asked_for() -> None:
    assert gpu.gpus_asked(Settings()) == 0
    assert gpu.gpus_asked(parse(WITH_GPU)) == pytest.approx(1.0)
    assert gpu._asked({"a": {"bundles": [{"GPU": 1, "CPU": 4}, {"GPU": 1}]}, "num_gpus": None}) == 2


def test_no_gpu_is_asked_for() -> None:
    assert found(gpu.gpu, FakeMachine(), subject())["gpu"].status is OK


def test_a_gpu_that_is_there() -> None:
    fake = FakeMachine(
        versions={"torch": "2.13.0"}, programs={"nvidia-smi": SMI}, built_with=("torch/lib/libtorch_cuda*",)
    )
    findings = found(gpu.gpu, fake, subject(**WITH_GPU))
    assert {one.status for one in findings.values()} == {OK}
    assert findings["gpu.device"].message == "1 × NVIDIA H200, 140.4 GiB, driver 570.86.15"


@pytest.mark.parametrize("printed", [None, "", "No devices were found\n"])
def test_a_gpu_that_is_not_there(printed: str | None) -> None:
    fake = FakeMachine(programs={"nvidia-smi": printed} if printed is not None else {})
    findings = found(gpu.gpu, fake, subject(**WITH_GPU))
    assert findings["gpu.device"].status is PROBLEM
    assert "nvidia-smi finds none" in findings["gpu.device"].message
    assert "built without CUDA" in findings["gpu.torch"].message


def test_fewer_gpus_than_asked_for_and_hidden_ones() -> None:
    fake = FakeMachine(programs={"nvidia-smi": SMI}, environ={"CUDA_VISIBLE_DEVICES": ""})
    findings = found(gpu.gpu, fake, subject(**on_gpu(synthesizer=0.8, embedder=0.7)))
    assert "ask for 1.5 GPUs, and there are 1" in findings["gpu.device"].message
    assert findings["gpu.visible"].fix == "unset CUDA_VISIBLE_DEVICES"
