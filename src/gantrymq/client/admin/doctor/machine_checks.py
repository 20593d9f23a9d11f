"""Judges a machine by what RocketMQ's operators set on theirs. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from gantrymq.client.admin.doctor.findings import DoctorFinding, Severity, in_order

OPEN_FILES: Final = 655_350
MAX_MAP_COUNT: Final = 655_360
SWAPPINESS_MAX: Final = 10
MIN_FREE_KBYTES: Final = 1_024
SCHEDULERS: Final = ("deadline", "mq-deadline")
GIB: Final = 1 << 30
STORE_BYTES_MIN: Final = 4 * GIB


@dataclass(frozen=True)
class DiskFacts:
    """A block device and its I/O scheduler."""

    name: str
    scheduler: str
    rotates: bool


@dataclass(frozen=True)
class MachineFacts:
    """What was read; None is unlimited for limits, and not there for others."""

    open_files: int | None
    locked_bytes: int | None
    max_map_count: int | None
    swappiness: int | None
    min_free_kbytes: int | None
    extra_free_kbytes: int | None
    disks: tuple[DiskFacts, ...]
    store: str
    store_free_bytes: int


def open_files(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """How many files and connections a process may have."""
    if facts.open_files is not None and facts.open_files < OPEN_FILES:
        yield DoctorFinding(
            "open-files",
            Severity.WARNING,
            "this machine",
            f"a process may open {facts.open_files} files; {OPEN_FILES} are advised",
            "nofile",
            f"ulimit -n {OPEN_FILES}; for good: echo '* - nofile {OPEN_FILES}' >> "
            "/etc/security/limits.conf",
        )


def max_map_count(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """How many files can be mapped: each store file is a map."""
    if facts.max_map_count is not None and facts.max_map_count < MAX_MAP_COUNT:
        yield _sysctl("vm.max_map_count", facts.max_map_count, f"{MAX_MAP_COUNT} or more")


def swappiness(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """How soon memory of processes is swapped out."""
    if facts.swappiness is not None and facts.swappiness > SWAPPINESS_MAX:
        yield _sysctl("vm.swappiness", facts.swappiness, f"{SWAPPINESS_MAX} or less")


def min_free(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """How much memory the kernel keeps free for itself."""
    if facts.min_free_kbytes is not None and facts.min_free_kbytes < MIN_FREE_KBYTES:
        yield _sysctl("vm.min_free_kbytes", facts.min_free_kbytes, f"{MIN_FREE_KBYTES} or more")


def extra_free(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """Some kernels keep more memory free for bursts."""
    if facts.extra_free_kbytes == 0:
        yield _sysctl("vm.extra_free_kbytes", 0, "2000000", Severity.NOTE)


def _sysctl(
    name: str, value: int, wanted: str, severity: Severity = Severity.WARNING
) -> DoctorFinding:
    number = wanted.split()[0]
    return DoctorFinding(
        "kernel",
        severity,
        "this machine",
        f"{name} is {value}; {wanted} is advised",
        name,
        f"sysctl -w {name}={number}; for good: echo '{name}={number}' >> "
        "/etc/sysctl.d/90-gantrymq.conf",
    )


def schedulers(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """The I/O scheduler of each disk."""
    for disk in facts.disks:
        if disk.scheduler in SCHEDULERS:
            continue
        harmless = disk.scheduler == "none" and not disk.rotates
        yield DoctorFinding(
            "scheduler",
            Severity.NOTE if harmless else Severity.WARNING,
            disk.name,
            f"its I/O scheduler is {disk.scheduler}; mq-deadline is advised"
            + (", and none is as good for NVMe" if harmless else ""),
            "scheduler",
            f"echo mq-deadline > /sys/block/{disk.name}/queue/scheduler",
        )


def locked_memory(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """How much memory a process may keep from being swapped out."""
    if facts.locked_bytes is not None:
        yield DoctorFinding(
            "locked-memory",
            Severity.NOTE,
            "this machine",
            f"a process may lock {facts.locked_bytes // 1024} KiB of memory; unlimited is advised",
            "memlock",
            "ulimit -l unlimited; for good: echo '* - memlock unlimited' >> "
            "/etc/security/limits.conf",
        )


def store_disk(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """Room for a store."""
    if facts.store_free_bytes < STORE_BYTES_MIN:
        yield DoctorFinding(
            "store-disk",
            Severity.ERROR,
            facts.store,
            f"{facts.store_free_bytes / GIB:.1f} GiB are free; a store needs "
            f"{STORE_BYTES_MIN // GIB} GiB at least",
            "storePathRootDir",
            "make room, or set storePathRootDir to a folder of a larger disk",
        )


MACHINE_CHECKS: tuple[Callable[[MachineFacts], Iterator[DoctorFinding]], ...] = (
    open_files,
    max_map_count,
    swappiness,
    min_free,
    extra_free,
    schedulers,
    locked_memory,
    store_disk,
)


def examine_machine(facts: MachineFacts) -> list[DoctorFinding]:
    """The findings of all checks of a machine, the worst first."""
    return in_order(finding for check in MACHINE_CHECKS for finding in check(facts))
