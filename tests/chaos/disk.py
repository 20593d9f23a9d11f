"""A disk of a broker that can be filled, turned read-only and slowed down.

`LoopDisk` is a file with an ext4 file system, mounted in the mount namespace of the broker's host,
so it goes away with it. Full is a file that takes all room. Read-only is what ext4 does by itself
when the device fails: the device is cut short, so that every access to it is an error; what was
written and not flushed is lost then, as on a real one. (ext4's `trigger_fs_error` would be simpler,
but in one try of thirty an `fdatasync` beside it reported success for what was lost.) Slow is the
limit of write operations that a control group has for one device, of either version.

`InjectedDisk` is for machines where none of this can be had: the broker runs as
`chaos.faulty_broker`, whose disk port fails as a file tells it to. Its errors are those of a real
disk, but nothing that was written is ever lost.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from chaos.faults import Action
from chaos.faulty_broker import CONTROL_VARIABLE
from chaos.network import Missing, Network, run

SIZE_BYTES: Final = 256 * 1024 * 1024
WRITES_PER_SECOND: Final = 10
TOOLS: Final = ("mkfs.ext4", "mount", "umount", "findmnt", "sh", "dd")
LOOP_SET_STATUS64: Final = 0x4C04
LOOP_GET_STATUS64: Final = 0x4C05
LOOP_INFO_BYTES: Final = 232
LOOP_SIZE_LIMIT_AT: Final = 32
"""Where `lo_sizelimit` stands in the kernel's `loop_info64`."""
BLOCK_BYTES: Final = 4096
MOUNT_TRIES: Final = 20
MOUNT_AGAIN_SECONDS: Final = 0.2
CGROUPS: Final = Path("/sys/fs/cgroup")


class Disk(Protocol):
    """The disk of one broker."""

    @property
    def environment(self) -> dict[str, str]:
        """What the broker's process has to know."""

    @property
    def program(self) -> str:
        """How the broker is started: a module with the function `mqbroker`."""

    def begin(self, action: Action, pid: int) -> None:
        """The fault comes; the broker is this process."""

    def undo(self, action: Action, pid: int) -> None:
        """The fault goes; a broker whose disk was read-only has ended before."""

    def close(self) -> None: ...


def why_no_loop_disks() -> str | None:
    """What this machine lacks for disks of its own, or None."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} missing"
    if os.geteuid() != 0:
        return "no right to mount"
    if not Path("/dev/loop-control").exists():
        return "/dev/loop-control missing"
    if _write_limit() is None:
        return "no control group that limits writes"
    return None


class WriteLimit:
    """A control group whose processes write slowly to one device."""

    def __init__(self, parent: Path, key: str, rule: Callable[[str], str]) -> None:
        self._parent, self._key, self._rule = parent, key, rule
        self._group = parent / f"gantrymq-chaos-{os.getpid()}-{id(self)}"

    def begin(self, pid: int, device: str) -> None:
        self._group.mkdir()
        (self._group / self._key).write_text(self._rule(device))
        (self._group / "cgroup.procs").write_text(str(pid))

    def end(self, pid: int) -> None:
        """Give the process back; one that has died is in no group any more."""
        if str(pid) in (self._group / "cgroup.procs").read_text().split():
            (self._parent / "cgroup.procs").write_text(str(pid))
        self._group.rmdir()


def _write_limit() -> WriteLimit | None:
    """The limit that this machine's control groups offer."""
    first = CGROUPS / "blkio"
    if (first / "blkio.throttle.write_iops_device").exists():
        key = "blkio.throttle.write_iops_device"
        return WriteLimit(first, key, lambda device: f"{device} {WRITES_PER_SECOND}")
    control = CGROUPS / "cgroup.subtree_control"
    if control.exists() and "io" in control.read_text().split():
        return WriteLimit(CGROUPS, "io.max", lambda device: f"{device} wiops={WRITES_PER_SECOND}")
    return None


def _cut_short(device: Path) -> None:
    """Leave a loop device its first block only; a new mount has a new device."""
    with device.open("rb+", buffering=0) as file:
        info = bytearray(LOOP_INFO_BYTES)
        fcntl.ioctl(file, LOOP_GET_STATUS64, info)
        struct.pack_into("Q", info, LOOP_SIZE_LIMIT_AT, BLOCK_BYTES)
        fcntl.ioctl(file, LOOP_SET_STATUS64, info)


class LoopDisk:
    """A file system of its own, in the namespace of one host."""

    program: Final = "gantrymq.cli.servers"

    def __init__(self, network: Network, host: str, folder: Path) -> None:
        self.environment: dict[str, str] = {}
        self._network, self._host, self._folder = network, host, folder
        self._image = folder.parent / "image"
        self._limit: WriteLimit | None = None
        folder.mkdir(parents=True)
        with self._image.open("wb") as file:
            file.truncate(SIZE_BYTES)
        run("mkfs.ext4", "-q", "-F", str(self._image))
        self._mount()

    def _inside(self, *command: str) -> list[str]:
        return self._network.command(self._host, command)

    def _mount(self) -> None:
        image, folder = str(self._image), str(self._folder)
        command = self._inside("mount", "-o", "loop,errors=remount-ro", image, folder)
        for _ in range(MOUNT_TRIES - 1):  # the device of the last mount goes a moment after it
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return
            time.sleep(MOUNT_AGAIN_SECONDS)
        run(*command)

    def _device(self) -> str:
        command = self._inside("findmnt", "-n", "-o", "SOURCE", str(self._folder))
        return Path(subprocess.check_output(command, text=True).strip()).name

    def begin(self, action: Action, pid: int) -> None:
        if action == "disk-full":
            self._fill()
        elif action == "disk-read-only":
            _cut_short(Path(f"/dev/{self._device()}"))
        else:
            self._slow_down(pid)

    def undo(self, action: Action, pid: int) -> None:
        if action == "disk-full":
            run(*self._inside("rm", f"{self._folder}/ballast"))
        elif action == "disk-read-only":  # as after a repair: what was only in memory is gone
            run(*self._inside("umount", str(self._folder)))
            self._mount()
        else:
            self._speed_up(pid)

    def _fill(self) -> None:
        """Take all the room that is left; `dd` ends with an error when it is done."""
        script = f"dd if=/dev/zero of={self._folder}/ballast bs=64k; sync {self._folder}/ballast"
        subprocess.run(self._inside("sh", "-c", script), capture_output=True, check=False)

    def _slow_down(self, pid: int) -> None:
        limit = _write_limit()
        if limit is None:
            raise Missing("no control group that limits writes")
        self._limit = limit
        limit.begin(pid, Path(f"/sys/block/{self._device()}/dev").read_text().strip())

    def _speed_up(self, pid: int) -> None:
        if self._limit is not None:
            self._limit.end(pid)
            self._limit = None

    def close(self) -> None:
        """A control group stays when its process has ended: it has to be removed."""
        self._speed_up(-1)


class InjectedDisk:
    """Fails at the broker's disk port."""

    program: Final = "chaos.faulty_broker"

    def __init__(self, network: Network, host: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._control = folder.parent / "disk-fault"
        self._control.write_text("")
        self.environment = {CONTROL_VARIABLE: str(self._control)}

    def begin(self, action: Action, pid: int) -> None:
        self._control.write_text(action)

    def undo(self, action: Action, pid: int) -> None:
        self._control.write_text("")

    def close(self) -> None:
        """There is nothing to remove."""
