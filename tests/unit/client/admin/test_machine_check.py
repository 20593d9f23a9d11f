"""The machine check: what it reads, from where, and what it advises."""

import resource
from dataclasses import replace
from pathlib import Path

import pytest

from gantrymq.client.admin.doctor.findings import Severity
from gantrymq.client.admin.doctor.machine import MachineSources, read_machine
from gantrymq.client.admin.doctor.machine_checks import (
    GIB,
    DiskFacts,
    MachineFacts,
    examine_machine,
)

WELL = MachineFacts(
    open_files=655_350,
    locked_bytes=None,
    max_map_count=655_360,
    swappiness=10,
    min_free_kbytes=1_024,
    extra_free_kbytes=None,
    disks=(DiskFacts("sda", "mq-deadline", rotates=True),),
    store="/data/store",
    store_free_bytes=4 * GIB,
)


def test_a_machine_at_the_advised_values_has_no_findings() -> None:
    """
    Each value exactly at its threshold is enough.
    """
    assert [] == examine_machine(WELL)


@pytest.mark.parametrize(
    "change, severity, text, mend",
    [
        ({"open_files": 1_024}, "warning", "may open 1024 files", "ulimit -n 655350"),
        ({"max_map_count": 65_530}, "warning", "is 65530", "sysctl -w vm.max_map_count=655360"),
        ({"swappiness": 11}, "warning", "is 11; 10 or less", "sysctl -w vm.swappiness=10"),
        ({"min_free_kbytes": 1_023}, "warning", "1024 or more", "vm.min_free_kbytes=1024"),
        ({"extra_free_kbytes": 0}, "note", "is 0", "sysctl -w vm.extra_free_kbytes=2000000"),
        (
            {"disks": (DiskFacts("sdb", "bfq", rotates=True),)},
            "warning", "its I/O scheduler is bfq", "> /sys/block/sdb/queue/scheduler",
        ),
        (
            {"disks": (DiskFacts("nvme0n1", "none", rotates=False),)},
            "note", "none is as good for NVMe", "/sys/block/nvme0n1/queue/scheduler",
        ),
        ({"locked_bytes": 65_536}, "note", "may lock 64 KiB", "ulimit -l unlimited"),
        (
            {"store_free_bytes": 4 * GIB - 1},
            "error", "4.0 GiB are free; a store needs 4 GiB", "storePathRootDir",
        ),
    ],
)  # fmt: skip
def test_each_value_below_its_threshold_is_a_finding(
    change: dict[str, object], severity: str, text: str, mend: str
) -> None:
    """
    One finding, with the command that mends it.
    """
    (found,) = examine_machine(replace(WELL, **change))  # type: ignore[arg-type]
    assert Severity(severity) is found.severity
    assert text in found.text
    assert mend in found.mend


def test_values_are_read_from_proc_and_sys(tmp_path: Path) -> None:
    """
    Each from its file; devices without a scheduler and loops are left out.
    """
    vm = tmp_path / "proc/sys/vm"
    vm.mkdir(parents=True)
    for name, value in {"max_map_count": 1, "swappiness": 2, "min_free_kbytes": 3}.items():
        (vm / name).write_text(f"{value}\n")
    for name, text in {
        "sda": "none [mq-deadline] kyber\n", "loop0": "[none]\n", "vdb": "none\n",
    }.items():  # fmt: skip
        queue = tmp_path / "sys/block" / name / "queue"
        queue.mkdir(parents=True)
        (queue / "scheduler").write_text(text)
        (queue / "rotational").write_text("1\n")
    limits = {resource.RLIMIT_NOFILE: 7, resource.RLIMIT_MEMLOCK: None}
    asked: list[Path] = []

    def free(path: Path) -> int:
        asked.append(path)
        return 9

    sources = MachineSources(tmp_path, limits.__getitem__, free)
    facts = read_machine(tmp_path / "not/yet/there", sources)
    assert facts == MachineFacts(
        open_files=7,
        locked_bytes=None,
        max_map_count=1,
        swappiness=2,
        min_free_kbytes=3,
        extra_free_kbytes=None,
        disks=(DiskFacts("sda", "mq-deadline", rotates=True),),
        store=str(tmp_path / "not/yet/there"),
        store_free_bytes=9,
    )
    assert [tmp_path] == asked


def test_a_machine_without_proc_and_sys_is_no_failure(tmp_path: Path) -> None:
    """
    What cannot be read is not judged.
    """
    sources = MachineSources(tmp_path, lambda kind: None, lambda path: 5 * GIB)
    assert [] == examine_machine(read_machine(tmp_path, sources))
