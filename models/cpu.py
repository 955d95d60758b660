"""What this machine's CPU can do, and the dtype that follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Dtype = Literal["auto", "float32", "bfloat16", "float16"]

_CPU_FLAGS = Path("/proc/cpuinfo")


def resolve_dtype(dtype: Dtype, *, flags: str | None) -> str:
    """The dtype to compute in. ``flags`` are the CPU's, None when the model runs on an accelerator.

    A CPU that multiplies bfloat16 in hardware is half again to twice as fast with it as with float32, in less memory;
    one that does not is several times slower with it.
    """
    if dtype != "auto" or flags is None:
        return dtype
    return "bfloat16" if {"avx512_bf16", "amx_bf16"} & set(flags.split()) else "float32"


def cpu_flags() -> str:
    """The instruction sets of this machine's CPU, separated by spaces; empty when it does not say."""
    if not _CPU_FLAGS.is_file():
        return ""
    lines = _CPU_FLAGS.read_text().splitlines()
    return next((line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))), "")
