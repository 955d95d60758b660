"""Python, CPU, memory, disks and limits, on machines made up for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from serving.cli.doctor import system
from serving.cli.doctor.findings import Status, Subject
from serving.cli.doctor.machine import Disk
from serving.settings import parse
from tests.unit.cli.doctor.fakes import CPUINFO, GIB, MEMINFO, FakeMachine, found

OK, WARNING, PROBLEM = Status.OK, Status.WARNING, Status.PROBLEM
HOME = "/home/me/answers"


def subject(**tree: Any) -> Subject:
    return Subject(parse({"home": HOME, **tree}), root=Path("/repo"))


def test_all_is_well() -> None:
    machine = FakeMachine()
    for check in (system.python, system.cpu, system.memory, system.disks, system.limits):
        assert {one.status for one in found(check, machine, subject()).values()} == {OK}


def test_another_python_and_another_system() -> None:
    findings = found(system.python, FakeMachine(python=(3, 12, 1), system="Darwin arm64"), subject())
    assert (findings["python.version"].status, findings["platform"].status) == (PROBLEM, PROBLEM)
    assert "Python 3.12.1" in findings["python.version"].message
    assert "apt-get install python3.11-venv" in findings["python.version"].fix
    assert "Darwin arm64" in findings["platform"].message


def flags(*names: str) -> FakeMachine:
    return FakeMachine(files={"/proc/cpuinfo": f"flags\t: fpu {' '.join(names)}\n", "/proc/meminfo": MEMINFO})


def test_the_dtype_is_the_one_that_the_models_choose() -> None:
    assert "bfloat16" in found(system.cpu, flags("avx2", "avx512_bf16"), subject())["cpu.dtype.synthesizer"].message
    assert "float32" in found(system.cpu, flags("avx2", "avx512f"), subject())["cpu.dtype.synthesizer"].message


@pytest.mark.parametrize(("has", "status"), [(("avx2",), WARNING), (("avx2", "amx_bf16"), OK)])
def test_bfloat16_that_the_cpu_does_not_compute(has: tuple[str, ...], status: Status) -> None:
    asked = subject(models={"synthesizer": {"dtype": "bfloat16"}})
    finding = found(system.cpu, flags(*has), asked)["cpu.dtype.synthesizer"]
    assert finding.status is status
    if status is WARNING:
        assert finding.fix == "answer up --set models.synthesizer.dtype=auto"


def test_a_cpu_without_avx2() -> None:
    assert found(system.cpu, flags("sse4_2"), subject())["cpu.features"].status is PROBLEM
    assert found(system.cpu, FakeMachine(files={}), subject())["cpu.features"].status is PROBLEM
    on_gpu = subject(models={"synthesizer": {"kv_cache_gib": None}}, deployments={"synthesizer": {"num_gpus": 0.5}})
    findings = found(system.cpu, flags("sse4_2"), on_gpu)
    assert findings["cpu.features"].status is OK
    assert "cpu.dtype.synthesizer" not in findings


def test_one_core() -> None:
    assert found(system.cpu, FakeMachine(core_count=1), subject())["cpu.cores"].status is WARNING


# Memory


def memory(**files: str) -> Any:
    machine = FakeMachine(files={"/proc/cpuinfo": CPUINFO, "/proc/meminfo": MEMINFO} | files)
    return found(system.memory, machine, subject())["memory"]


def grouped(version: int, limit: int | str, used: int, *, group: str = "/", cached: int = 0) -> dict[str, str]:
    """Files of a control group with this limit."""
    if version == 2:
        names = ("/sys/fs/cgroup", "memory.max", "memory.current", f"inactive_file {cached}")
    else:
        names = (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            f"total_inactive_file {cached}",
        )
    folder = names[0] + group.rstrip("/")
    return {
        f"{folder}/{names[1]}": f"{limit}\n",
        f"{folder}/{names[2]}": f"{used}\n",
        f"{folder}/memory.stat": f"anon 5\n{names[3]}\n",
    }


def membership(version: int, group: str) -> dict[str, str]:
    return {
        "/proc/self/cgroup": f"0::{group}\n" if version == 2 else f"5:cpu,cpuacct:{group}\n4:memory:{group}\n0::/\n"
    }


def test_memory_of_the_machine() -> None:
    assert memory().message == "this machine has 32.0 GiB of memory, 24.0 GiB of it free"
    assert memory(**{"/proc/meminfo": "MemTotal: 3145728 kB\nMemAvailable: 3000000 kB\n"}).status is PROBLEM
    assert memory(**{"/proc/meminfo": "MemTotal: 33554432 kB\nMemAvailable: 3000000 kB\n"}).status is WARNING
    assert memory(**{"/proc/meminfo": "gibberish"}).status is WARNING


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("group", ["/", "/docker/abc", "/a/b"])
def test_the_limit_of_a_control_group_counts(version: int, group: str) -> None:
    finding = memory(**grouped(version, 2 * GIB, GIB, group=group), **membership(version, group))
    assert finding.status is PROBLEM
    assert finding.message.startswith("this container has 2.0 GiB of memory, 1.0 GiB of it free")
    assert "docker run --memory" in finding.fix


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_a_group_above_counts(version: int) -> None:
    finding = memory(**grouped(version, 6 * GIB, GIB, group="/a"), **membership(version, "/a/b/c"))
    assert finding.status is WARNING
    assert finding.message.startswith("this container has 6.0 GiB of memory, 5.0 GiB of it free")


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_that_the_container_sees_as_its_root_counts(version: int) -> None:
    finding = memory(**grouped(version, 3 * GIB, GIB), **membership(version, "/docker/on-the-host"))
    assert finding.message.startswith("this container has 3.0 GiB")


@pytest.mark.parametrize("version", [1, 2])
def test_files_in_the_cache_count_as_free(version: int) -> None:
    finding = memory(**grouped(version, 16 * GIB, 15 * GIB, cached=12 * GIB), **membership(version, "/"))
    assert finding.status is OK
    assert "13.0 GiB of it free" in finding.message


@pytest.mark.parametrize("limit", ["max", 2**63 - 4096, "", "nonsense"])
def test_no_limit_is_none(limit: int | str) -> None:
    for version in (1, 2):
        finding = memory(**grouped(version, limit, GIB), **membership(version, "/"))
        assert finding.message.startswith("this machine has 32.0 GiB")


def test_a_membership_that_cannot_be_read() -> None:
    assert memory(**{"/proc/self/cgroup": "what\n::\n"}).status is OK


# Disks


def test_a_home_without_room_or_that_cannot_be_written_to() -> None:
    full = FakeMachine(disks={HOME: Disk(10 * GIB, GIB)})
    finding = found(system.disks, full, subject())["disk.home"]
    assert (finding.status, "ANSWER_HOME" in finding.fix) == (PROBLEM, True)
    finding = found(system.disks, FakeMachine(unwritable=(HOME,)), subject())["disk.home"]
    assert (finding.status, "ANSWER_HOME" in finding.fix) == (PROBLEM, True)


def test_a_home_that_is_already_filled_needs_less(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    machine = FakeMachine(disks={str(tmp_path): Disk(10 * GIB, GIB)})
    assert found(system.disks, machine, subject(home=str(tmp_path)))["disk.home"].status is OK


def test_scratch_that_ray_finds_too_full() -> None:
    machine = FakeMachine(disks={"/tmp": Disk(100 * GIB, 4 * GIB)})
    assert found(system.disks, machine, subject())["disk.tmp"].status is WARNING
    elsewhere = FakeMachine(environ={"RAY_TMPDIR": "/big"}, disks={"/tmp": Disk(100 * GIB, 4 * GIB)})
    assert found(system.disks, elsewhere, subject())["disk.tmp"].status is OK
    assert found(system.disks, FakeMachine(unwritable=("/tmp",)), subject())["disk.tmp"].status is PROBLEM


def test_the_small_shared_memory_of_a_container() -> None:
    machine = FakeMachine(disks={"/dev/shm": Disk(64 * 2**20, 64 * 2**20)})
    finding = found(system.disks, machine, subject())["disk.shm"]
    assert (finding.status, finding.fix) == (WARNING, "docker run --shm-size=1g …")


def test_few_open_files() -> None:
    assert found(system.limits, FakeMachine(file_limit=1024), subject())["limits.files"].fix == "ulimit -n 65536"
