"""GPUs, where the settings ask for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from serving.cli.doctor.findings import Finding, Subject, gib, ok, problem
from serving.cli.doctor.machine import Machine
from serving.settings import Settings


def gpus_asked(settings: Settings) -> float:
    """How many GPUs the deployments ask for together: one replica each, by its share."""
    return _asked(settings.deployments.model_dump(mode="json"))


def gpus_of(part: BaseModel) -> float:
    """How many GPUs one deployment's settings ask for."""
    return _asked(part.model_dump(mode="json"))


def _asked(tree: Any) -> float:
    """The GPUs in a deployment's settings, wherever they stand: ``num_gpus``, or ``GPU`` of placement bundles."""
    if isinstance(tree, dict):
        return sum(
            float(value) if key in ("num_gpus", "GPU") and isinstance(value, int | float) else _asked(value)
            for key, value in tree.items()
        )
    return sum(map(_asked, tree)) if isinstance(tree, list) else 0.0


def gpu(machine: Machine, subject: Subject) -> Iterator[Finding]:
    asked = gpus_asked(subject.settings)
    if not asked:
        yield ok("gpu", "the settings ask for none")
        return
    elsewhere = "choose a target without one (configs/embedded.yaml), or "
    listed = machine.run("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits")
    found = [line.split(", ") for line in (listed or "").splitlines() if line.count(", ") >= 2]
    if not found:
        message = f"the settings ask for {asked:g} GPU, and nvidia-smi finds none"
        yield problem(
            "gpu.device", message, f"{elsewhere}install NVIDIA's driver; in a container: docker run --gpus all …"
        )
    elif len(found) < math.ceil(asked - 1e-9):
        message = f"the settings ask for {asked:g} GPUs, and there are {len(found)}"
        yield problem(
            "gpu.device", message, f"answer config show{subject.with_config} --origin | grep num_gpus, and lower them"
        )
    else:
        name, mebibytes, driver = found[0][:3]
        memory = gib(int(mebibytes) * 2**20) if mebibytes.strip().isdecimal() else mebibytes
        yield ok("gpu.device", f"{len(found)} × {name}, {memory}, driver {driver}")
    if machine.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        yield problem("gpu.visible", "CUDA_VISIBLE_DEVICES hides every GPU", "unset CUDA_VISIBLE_DEVICES")
    torch = machine.version_of("torch")
    if torch is None or not machine.has_file("torch", "lib/libtorch_cuda*"):
        message = f"torch {torch or 'is not installed'}" + (" is built without CUDA" if torch else "")
        yield problem("gpu.torch", message, "pip install --no-deps --require-hashes -r configs/locks/gpu.lock")
    else:
        yield ok("gpu.torch", f"torch {torch} is built with CUDA")
