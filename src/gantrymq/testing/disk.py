"""A disk in memory with more faults than a real one, for tests and simulations.

It records what was synced. `image` is what a power cut might leave: everything synced, any mixture
of versions of the 512-byte sectors that were not, and a prefix of the unsynced operations on names.
The disk can be full, operations can fail on request, bits can turn over, and a callback can run
after every change.
"""

import errno
import os
from collections.abc import Callable, Sequence
from random import Random

from gantrymq.base.disk import Bytes, LockedError, parent_of

PAGE = 4096
SECTOR = 512
VERSIONS_MAX = 6

Fault = Callable[[str, str], OSError | None]
"""Asked before each operation, by name and path, for an error to raise in its place."""

NameOperation = tuple[frozenset[str], Callable[["Names"], None]]
"""The directories that an operation touches, and what it does to names."""


class Inode:
    """The contents of a file: what programs read, and what the disk may hold."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.blocks: set[int] = set()
        self.history: dict[int, list[bytes]] = {}
        """Per page dirtied since the last sync: its versions, the durable one first."""
        self.sizes: list[int] = []
        """Lengths since the last sync, the durable one first; empty if it did not change."""

    def remember(self, start: int, stop: int) -> None:
        """Keep the present versions of pages that are about to change."""
        for page in range(start // PAGE, (stop + PAGE - 1) // PAGE):
            versions = self.history.setdefault(page, [])
            versions.append(self.page(page))
            if len(versions) > VERSIONS_MAX:
                del versions[1]

    def page(self, number: int) -> bytes:
        """A page as programs read it now."""
        return bytes(self.data[number * PAGE : (number + 1) * PAGE]).ljust(PAGE, b"\0")

    def resize(self, size: int) -> None:
        """Change the length; new bytes are zeros."""
        if size == len(self.data):
            return
        self.sizes.append(len(self.data))
        if size < len(self.data):
            self.remember(size, len(self.data))
            del self.data[size:]
            self.blocks = {block for block in self.blocks if block * PAGE < size}
        else:
            self.data.extend(bytes(size - len(self.data)))

    def sync(self) -> None:
        """Make the present version durable: a power cut leaves it."""
        self.history.clear()
        self.sizes.clear()

    def is_durable(self, start: int, stop: int) -> bool:
        """Whether every power cut would leave this range as programs read it now."""
        if stop > min([*self.sizes, len(self.data)]):
            return False
        for number in range(start // PAGE, (stop + PAGE - 1) // PAGE):
            part = slice(max(0, start - number * PAGE), stop - number * PAGE)
            now = self.page(number)[part] if number in self.history else b""
            if any(version[part] != now for version in self.history.get(number, ())):
                return False
        return True

    def after_power_cut(self, random: Random) -> "Inode":
        """One of the versions that the disk may hold."""
        left = Inode()
        size = random.choice([*self.sizes, len(self.data)])
        data = bytearray(self.data[:size].ljust(size, b"\0"))
        mood = random.random()  # all old or all new pages often, as single choices seldom give
        for number, versions in self.history.items():
            choices = [*versions, self.page(number)]
            for at in range(0, PAGE, SECTOR):
                place = number * PAGE + at
                if place >= size:
                    break
                pick = 0 if mood < 0.2 else -1 if mood > 0.8 else random.randrange(len(choices))
                sector = choices[pick][at : at + SECTOR]
                data[place : place + SECTOR] = sector[: size - place]
        left.data, left.blocks = data, set(self.blocks)
        return left


class Names:
    """The files by name, and the directories."""

    def __init__(self) -> None:
        self.files: dict[str, Inode] = {}
        self.directories: set[str] = set()

    def copy(self) -> "Names":
        """A copy of the names, for the same files."""
        other = Names()
        other.files, other.directories = dict(self.files), set(self.directories)
        return other

    def move(self, old: str, new: str) -> None:
        """Rename a file, or a directory with all below it."""
        if old in self.files:
            self.files[new] = self.files.pop(old)
        for path in [path for path in self.files if path.startswith(f"{old}/")]:
            self.files[new + path[len(old) :]] = self.files.pop(path)
        moved = {path for path in self.directories if path == old or path.startswith(f"{old}/")}
        self.directories -= moved
        self.directories |= {new + path[len(old) :] for path in moved}

    def forget_orphans(self) -> None:
        """Drop files and directories whose parent directory does not exist."""
        self.directories = {path for path in self.directories if self._is_reachable(path)}
        self.files = {path: inode for path, inode in self.files.items() if self._has_home(path)}

    def _is_reachable(self, path: str) -> bool:
        return not path or (path in self.directories and self._is_reachable(parent_of(path)))

    def _has_home(self, path: str) -> bool:
        return self._is_reachable(parent_of(path))


class MemoryFile:
    """An open file of a MemoryDisk."""

    __slots__ = ("_disk", "inode", "path")

    def __init__(self, disk: "MemoryDisk", inode: Inode, path: str) -> None:
        self._disk, self.inode, self.path = disk, inode, path

    def pwrite(self, data: Bytes, at: int) -> None:
        self._disk.before("pwrite", self.path)
        room = self._disk.claim(self.inode, at, at + len(data))
        self._store(bytes(data)[:room], at)
        self._disk.after()
        if room < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)

    def _store(self, data: bytes, at: int) -> None:
        inode = self.inode
        if not data:
            return
        inode.remember(at, at + len(data))
        if at + len(data) > len(inode.data):
            inode.sizes.append(len(inode.data))
            inode.data.extend(bytes(at + len(data) - len(inode.data)))
        inode.data[at : at + len(data)] = data

    def pread(self, size: int, at: int) -> bytes:
        self._disk.before("pread", self.path)
        return bytes(self.inode.data[at : at + size])

    def pread_warm(self, size: int, at: int) -> bytes | None:
        if self._disk.is_cold(self.path, at):
            return None
        return self.pread(size, at)

    def sync(self) -> None:
        self._disk.before("sync", self.path)
        self.inode.sync()
        self._disk.after()

    def allocate(self, size: int) -> None:
        self._disk.before("allocate", self.path)
        if self._disk.claim(self.inode, 0, size) < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self.inode.resize(max(size, len(self.inode.data)))
        self._disk.after()

    def truncate(self, size: int) -> None:
        self._disk.before("truncate", self.path)
        self.inode.resize(size)
        self._disk.after()

    def size(self) -> int:
        return len(self.inode.data)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        """Nothing to do."""


class MemoryLock:
    """A claim on a path of a MemoryDisk."""

    def __init__(self, disk: "MemoryDisk", path: str) -> None:
        if path in disk.locked:
            raise LockedError(f"{path} is locked by process {os.getpid()}")
        disk.locked.add(path)
        self._disk, self._path = disk, path

    def release(self) -> None:
        self._disk.locked.discard(self._path)


class MemoryDisk:
    """A file system in memory."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self._boots = 0
        self.locked: set[str] = set()
        self.fault: Fault | None = None
        self.after_each: Callable[[], None] | None = None
        self.is_cold: Callable[[str, int], bool] = lambda path, at: False
        self._names, self._durable = Names(), Names()
        self._pending: list[NameOperation] = []

    # Around every operation

    def before(self, operation: str, path: str) -> None:
        """Raise the error that `fault` returns for this operation, if any."""
        error = self.fault(operation, path) if self.fault is not None else None
        if error is not None:
            raise error

    def after(self) -> None:
        """Call `after_each` after a change."""
        if self.after_each is not None:
            self.after_each()

    def claim(self, inode: Inode, start: int, stop: int) -> int:
        """Allocate blocks for a range; returns for how many of its bytes the disk had room."""
        for block in range(start // PAGE, (stop + PAGE - 1) // PAGE):
            if block not in inode.blocks:
                if self.capacity is not None and self._used() >= self.capacity:
                    return max(0, block * PAGE - start)
                inode.blocks.add(block)
        return stop - start

    def _used(self) -> int:
        return sum(len(inode.blocks) for inode in self._names.files.values()) * PAGE

    def _do(self, directories: Sequence[str], change: Callable[[Names], None]) -> None:
        change(self._names)
        self._pending.append((frozenset(directories), change))
        self.after()

    # The disk port

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        if path not in self._names.files:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self.before("create", path)
            self._check_home(path)
            inode = Inode()
            self._do([parent_of(path)], lambda names: names.files.update({path: inode}))
        return MemoryFile(self, self._names.files[path], path)

    def _check_home(self, path: str) -> None:
        home = parent_of(path)
        if home and home not in self._names.directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def open_read(self, path: str) -> MemoryFile:
        return self.open(path)

    def boot_id(self) -> str:
        return f"boot {self._boots}"

    def list(self, directory: str) -> Sequence[str]:
        prefix = f"{directory}/"
        below = [*self._names.files, *self._names.directories]
        rest = (path[len(prefix) :] for path in below if path.startswith(prefix))
        return sorted(name for name in rest if "/" not in name)

    def exists(self, path: str) -> bool:
        return path in self._names.files or path in self._names.directories

    def is_dir(self, path: str) -> bool:
        return path in self._names.directories

    def delete(self, path: str) -> None:
        self.before("delete", path)
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if self.is_dir(path) and self.list(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)

        def change(names: Names) -> None:
            names.files.pop(path, None)
            names.directories.discard(path)

        self._do([parent_of(path)], change)

    def rename(self, old: str, new: str) -> None:
        self.before("rename", old)
        if not self.exists(old):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        self._check_home(new)
        self._do([parent_of(old), parent_of(new)], lambda names: names.move(old, new))

    def keep_mode(self, old: str, new: str) -> None:
        """Files in memory have no modes."""

    def make_private(self, path: str) -> None:
        """The same."""

    def is_shared(self, path: str) -> bool:
        return False

    def make_dirs(self, path: str) -> None:
        if not path or path in self._names.directories:
            return
        self.make_dirs(parent_of(path))
        self.before("mkdir", path)
        self._do([parent_of(path)], lambda names: names.directories.add(path))

    def sync_dir(self, path: str) -> None:
        self.before("sync_dir", path)
        rest: list[NameOperation] = []
        for directories, change in self._pending:
            if path in directories:
                change(self._durable)
            else:
                rest.append((directories, change))
        self._pending = rest
        self.after()

    def sync_all(self, root: str) -> None:
        self.before("sync_all", root)
        self._pending.clear()
        self._durable = self._names.copy()
        for inode in self._names.files.values():
            inode.sync()
        self.after()

    def free_bytes(self, root: str) -> int:
        return 1 << 40 if self.capacity is None else max(0, self.capacity - self._used())

    def used_ratio(self, root: str) -> float:
        return 0.0 if not self.capacity else self._used() / self.capacity

    def lock(self, path: str) -> MemoryLock:
        return MemoryLock(self, path)

    # Power cut, kill and decay

    def part_of(self, path: str, start: int, stop: int, *, durable: bool = False) -> bytes | None:
        """A part of a file; with `durable` only if every power cut would leave it."""
        inode = (self._durable if durable else self._names).files.get(path)
        if inode is None or (durable and not inode.is_durable(start, stop)):
            return None
        return bytes(inode.data[start:stop])

    def flip_bit(self, path: str, at: int, bit: int = 0) -> None:
        """Turn one bit of a file over, as an old disk does: nobody is told."""
        self._names.files[path].data[at] ^= 1 << bit

    def image(self, random: Random) -> "MemoryDisk":
        """The disk as a power cut at this moment might leave it."""
        names = self._durable.copy()
        for _, change in self._pending[: random.randint(0, len(self._pending))]:
            change(names)
        names.forget_orphans()
        left: dict[int, Inode] = {}
        for path, inode in names.files.items():
            if id(inode) not in left:
                left[id(inode)] = inode.after_power_cut(random)
            names.files[path] = left[id(inode)]
        disk = self._from(names)
        disk._boots = self._boots + 1
        return disk

    def after_kill(self) -> "MemoryDisk":
        """The disk as the next process finds it when this one is killed: nothing is lost."""
        names = self._names.copy()
        for path, inode in names.files.items():
            copy = Inode()
            copy.data, copy.blocks = bytearray(inode.data), set(inode.blocks)
            names.files[path] = copy
        return self._from(names)

    def _from(self, names: Names) -> "MemoryDisk":
        disk = MemoryDisk(self.capacity)
        disk._names, disk._durable, disk._boots = names, names.copy(), self._boots
        return disk

    def contents(self) -> dict[str, bytes]:
        """All files with their bytes, to compare two disks."""
        return {path: bytes(inode.data) for path, inode in sorted(self._names.files.items())}
