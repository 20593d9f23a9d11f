"""The disk as a port: what the store needs of a file system, and the real one."""

import contextlib
import ctypes
import ctypes.util
import errno
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from gantrymq.base.errors import GantryError

Bytes = bytes | bytearray | memoryview
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class LockedError(GantryError):
    """Another process owns the files; the text names it."""


class File(Protocol):
    """One open file, addressed by position. It has no cursor, so callers share none."""

    @property
    def path(self) -> str:
        """Where the file was opened."""

    def pwrite(self, data: Bytes, at: int) -> None:
        """Write all of `data` at `at`, or raise OSError; a short write is an error."""

    def pread(self, size: int, at: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""

    def pread_warm(self, size: int, at: int) -> bytes | None:
        """Like `pread` if the page cache has the bytes; None if it would wait for the disk."""

    def sync(self) -> None:
        """Make the contents and the length durable."""

    def allocate(self, size: int) -> None:
        """Grow to `size` bytes of zeros with real blocks behind them, or raise OSError."""

    def truncate(self, size: int) -> None:
        """Cut or grow to `size`; growth is sparse."""

    def size(self) -> int:
        """The length in bytes."""

    def fileno(self) -> int:
        """The descriptor, for callers that sync it elsewhere; -1 if there is none."""

    def close(self) -> None:
        """Close the descriptor; closing twice is fine."""


class Lock(Protocol):
    """An exclusive claim that lasts until it is released or the process ends."""

    def release(self) -> None:
        """Release the lock."""


class Disk(Protocol):
    """Everything the store needs of a file system. Paths are strings with `/` between parts."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; `create` makes an empty file when there is none."""

    def open_read(self, path: str) -> File:
        """Open for reading only, for code that does not own the store."""

    def boot_id(self) -> str:
        """Changes whenever the machine loses what was written and not synced."""

    def list(self, directory: str) -> Sequence[str]:
        """Sorted names in a directory; nothing when it does not exist."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of that name."""

    def is_dir(self, path: str) -> bool:
        """Whether there is a directory of that name."""

    def delete(self, path: str) -> None:
        """Remove a file or an empty directory."""

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name, replacing a file that has it."""

    def keep_mode(self, old: str, new: str) -> None:
        """Let the same users read and write `new` as `old`: it may hold secrets, too."""

    def make_private(self, path: str) -> None:
        """Let no other user read or write a file."""

    def is_shared(self, path: str) -> bool:
        """Whether the file has further names, such as one in a snapshot."""

    def make_dirs(self, path: str) -> None:
        """Make a directory and what is missing above it."""

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""

    def sync_all(self, root: str) -> None:
        """Make everything on the file system of `root` durable."""

    def free_bytes(self, root: str) -> int:
        """The bytes that an ordinary user may still write."""

    def used_ratio(self, root: str) -> float:
        """How full the file system is, from 0 to 1."""

    def lock(self, path: str) -> Lock:
        """Claim the files that belong to this lock file, or raise LockedError."""


def parent_of(path: str) -> str:
    """The directory that holds `path`."""
    return path.rpartition("/")[0]


COPY_BYTES: Final = 1 << 20


def copy_file(disk: Disk, source: str, target: str) -> None:
    """Copy a file and sync it; stretches of zeros take no space in the copy."""
    old, new = disk.open_read(source), disk.open(target, create=True)
    try:
        at = 0
        while data := old.pread(COPY_BYTES, at):
            if data.count(0) != len(data):
                new.pwrite(data, at)
            at += len(data)
        new.truncate(at)
        new.sync()
    finally:
        old.close()
        new.close()


def own_file(disk: Disk, path: str) -> bool:
    """Give a file that has further names a copy of its own, before bytes of it are changed.

    Returns whether that was needed. Whoever has it open has the shared one still.
    """
    if not disk.is_shared(path):
        return False
    if disk.exists(f"{path}.own"):  # of a run that was ended
        disk.delete(f"{path}.own")
    copy_file(disk, path, f"{path}.own")
    disk.rename(f"{path}.own", path)
    disk.sync_dir(parent_of(path))
    return True


def delete_tree(disk: Disk, path: str) -> None:
    """Remove a directory and all below it."""
    if disk.is_dir(path):
        for name in disk.list(path):
            delete_tree(disk, f"{path}/{name}")
    disk.delete(path)


class OsFile:
    """A descriptor of the operating system.

    It closes itself when the last holder drops it, so its number is never reused while a reader in
    a worker thread holds it: a cache that evicts the file only drops its reference.
    """

    __slots__ = ("_fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd, self.path = fd, path

    def __del__(self) -> None:
        self.close()

    def pwrite(self, data: Bytes, at: int) -> None:
        written = os.pwrite(self._fd, data, at)
        if written != len(data):
            # The usual reason is a full disk; a second write would raise that error.
            raise OSError(errno.ENOSPC, f"{written} of {len(data)} bytes written", self.path)

    def pread(self, size: int, at: int) -> bytes:
        return os.pread(self._fd, size, at)

    if sys.platform == "linux":

        def pread_warm(self, size: int, at: int) -> bytes | None:
            buffer = bytearray(size)
            try:
                got = os.preadv(self._fd, [buffer], at, os.RWF_NOWAIT)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    return None
                if error.errno == errno.EOPNOTSUPP:  # the file system does not support it
                    return self.pread(size, at)
                raise
            if got < size:
                # Either the file ends here or the rest is not cached; only the length can tell.
                return None if at + got < self.size() else bytes(buffer[:got])
            return bytes(buffer)

    else:

        def pread_warm(self, size: int, at: int) -> bytes | None:
            return self.pread(size, at)

    def sync(self) -> None:
        getattr(os, "fdatasync", os.fsync)(self._fd)

    def allocate(self, size: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._fd, 0, size)
        else:
            os.truncate(self._fd, max(size, self.size()))

    def truncate(self, size: int) -> None:
        os.truncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


_locked_here: set[tuple[int, int]] = set()
"""Record locks do not exclude a process from itself, so this set does."""


class OsLock:
    """A POSIX record lock on byte 0, the kind that Java's FileChannel takes."""

    def __init__(self, path: str) -> None:
        import fcntl  # Windows has none, but clients there load this module, too

        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        stat = os.fstat(self._file)
        self._identity = (stat.st_dev, stat.st_ino)
        if self._identity in _locked_here:
            # Closing any descriptor of the file would drop this process's own lock on it, so
            # this one stays open for good.
            raise LockedError(f"{path} is locked by this process already (pid {os.getpid()})")
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            locked = _locked(path, self._file)
            os.close(self._file)
            raise locked from error
        _locked_here.add(self._identity)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, b"lock %d\n" % os.getpid(), 0)

    def release(self) -> None:
        if self._identity in _locked_here:
            _locked_here.discard(self._identity)
            os.close(self._file)


def check_unlocked(path: str) -> None:
    """Raise LockedError if a process holds this lock, this one too. The file is not changed."""
    import fcntl

    try:
        stat = os.stat(path)
        if (stat.st_dev, stat.st_ino) in _locked_here:  # closing it would drop the lock
            raise LockedError(f"{path} is locked by this process (pid {os.getpid()})")
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError as error:
        raise _locked(path, file) from error
    finally:
        os.close(file)


def _locked(path: str, file: int) -> LockedError:
    holder = re.search(rb"lock (\d+)", os.pread(file, 64, 0))
    who = f"process {int(holder[1])}" if holder else "another process"
    return LockedError(f"{path} is locked by {who}")


class OsDisk:
    """The file system of this machine."""

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(os.open(path, flags, 0o644), path)

    def open_read(self, path: str) -> OsFile:
        return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)

    def boot_id(self) -> str:
        try:
            return BOOT_ID.read_text().strip()
        except OSError:
            return "unknown"  # macOS, where the broker runs for development only

    def list(self, directory: str) -> Sequence[str]:
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def is_dir(self, path: str) -> bool:
        return Path(path).is_dir()

    def delete(self, path: str) -> None:
        if self.is_dir(path):
            Path(path).rmdir()
        else:
            Path(path).unlink()

    def rename(self, old: str, new: str) -> None:
        Path(old).replace(new)

    def keep_mode(self, old: str, new: str) -> None:
        os.chmod(new, os.stat(old).st_mode & 0o777)

    def make_private(self, path: str) -> None:
        os.chmod(path, 0o600)

    def is_shared(self, path: str) -> bool:
        return os.stat(path).st_nlink > 1

    def make_dirs(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_all(self, root: str) -> None:
        fd = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _syncfs(fd)
        finally:
            os.close(fd)

    def free_bytes(self, root: str) -> int:
        stat = os.statvfs(root)
        return stat.f_bavail * stat.f_frsize

    def used_ratio(self, root: str) -> float:
        stat = os.statvfs(root)
        used = stat.f_blocks - stat.f_bfree
        # Blocks reserved for the superuser do not count as free, as in `df` and Java.
        usable = used + stat.f_bavail
        return used / usable if usable else 1.0

    def lock(self, path: str) -> OsLock:
        return OsLock(path)


def _syncfs(fd: int) -> None:
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    with contextlib.suppress(AttributeError):
        if libc.syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return
    os.sync()  # no syncfs on this system: sync all file systems
