"""Reads what the machine check judges: limits of this process, /proc, /sys, and a disk.

It reads and never sets. Where each value comes from can be replaced, for tests and containers.
"""

import os
import resource
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gantrymq.client.admin.doctor.machine_checks import DiskFacts, MachineFacts


def _limit(kind: int) -> int | None:
    """The limit that a process started from here gets; None is unlimited."""
    soft, _ = resource.getrlimit(kind)
    return None if soft == resource.RLIM_INFINITY else soft


@dataclass(frozen=True)
class MachineSources:
    """Where the values come from."""

    root: Path = Path("/")
    """Above `proc` and `sys`."""
    limit: Callable[[int], int | None] = _limit
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free


def read_machine(store: Path, sources: MachineSources | None = None) -> MachineFacts:
    """The facts about this machine, and about the disk of a store folder."""
    sources = sources or MachineSources()
    vm = sources.root / "proc/sys/vm"
    folder = _existing(store)
    return MachineFacts(
        open_files=sources.limit(resource.RLIMIT_NOFILE),
        locked_bytes=sources.limit(resource.RLIMIT_MEMLOCK),
        max_map_count=_number(vm / "max_map_count"),
        swappiness=_number(vm / "swappiness"),
        min_free_kbytes=_number(vm / "min_free_kbytes"),
        extra_free_kbytes=_number(vm / "extra_free_kbytes"),
        disks=tuple(_disks(sources.root)),
        store=str(store),
        store_free_bytes=sources.free_bytes(folder),
    )


def _existing(path: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    path = path.absolute()
    return next(each for each in (path, *path.parents) if each.exists())


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _disks(root: Path) -> Iterator[DiskFacts]:
    """The block devices that have an I/O scheduler."""
    try:
        names = sorted(os.listdir(root / "sys/block"))
    except OSError:
        return
    for name in names:
        queue = root / "sys/block" / name / "queue"
        try:
            text = (queue / "scheduler").read_text()
        except OSError:
            continue
        if name.startswith(("loop", "ram", "zram")) or "[" not in text:
            continue
        active = text.partition("[")[2].partition("]")[0]
        yield DiskFacts(name, active, bool(_number(queue / "rotational")))
