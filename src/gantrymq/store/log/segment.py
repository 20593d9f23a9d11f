"""Files of one fixed size, named by the offset of their first byte, and open descriptors."""

import logging
from collections import OrderedDict

from gantrymq.base.disk import Disk, File

log = logging.getLogger(__name__)


def file_name(base: int) -> str:
    """The name of the file that begins at `base`."""
    return f"{base:020d}"


def bases_in(disk: Disk, directory: str) -> list[int]:
    """The first offsets of the files in a directory, sorted; other names are ignored."""
    return [int(name) for name in disk.list(directory) if len(name) == 20 and name.isdigit()]


def last_run(bases: list[int], size: int) -> list[int]:
    """The files up to the newest that follow each other without a gap."""
    for index in range(len(bases) - 1, 0, -1):
        if bases[index] - bases[index - 1] != size:
            return bases[index:]
    return bases


class OpenFiles:
    """Open files by path; if there are too many, the least recently used one is dropped.

    Dropping means that this table gives up its reference. A file that a worker still reads closes
    when the worker is done.
    """

    def __init__(self, disk: Disk, limit: int) -> None:
        self.disk, self._limit = disk, limit
        self._files: OrderedDict[str, File] = OrderedDict()

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: str, *, create: bool = False) -> File:
        """The open file of that path; FileNotFoundError if it does not exist, unless `create`."""
        file = self._files.get(path)
        if file is None:
            file = self.disk.open(path, create=create)
            self._files[path] = file
            if len(self._files) > self._limit:
                self._files.popitem(last=False)
        else:
            self._files.move_to_end(path)
        return file

    def put(self, file: File) -> None:
        """Add a file that the caller opened."""
        self._files[file.path] = file
        self._files.move_to_end(file.path)

    def drop(self, path: str) -> None:
        """Drop a file that is about to be deleted or renamed."""
        self._files.pop(path, None)

    def drop_below(self, directory: str) -> None:
        """Drop every file below a directory."""
        prefix = f"{directory}/"
        for path in [path for path in self._files if path.startswith(prefix)]:
            del self._files[path]

    def clear(self) -> None:
        """Drop all files."""
        self._files.clear()
