"""A log offset that has to survive a crash, in a small file of its own."""

from typing import Final

from gantrymq.base.disk import Disk
from gantrymq.base.files import load_text, save_text

CUT: Final = "cut_at"
"""Where the next start cuts the log, as an operator ordered."""
DAMAGED: Final = "damaged"
"""Where recovery cuts a damaged log: on disk before the cut, until whoever has to know noted it."""


class OffsetMark:
    """A file with one offset; without the file there is none."""

    def __init__(self, disk: Disk, root: str, name: str) -> None:
        self._disk, self._root, self._path = disk, root, f"{root}/{name}"
        text = load_text(disk, self._path)
        self.at = int(text) if text is not None and text.strip().isdigit() else None
        """None without a file."""

    def set(self, at: int) -> None:
        """Write the file."""
        save_text(self._disk, self._path, f"{at}\n")
        self.at = at

    def clear(self) -> None:
        """Delete the file."""
        if self.at is not None:
            for name in (self._path, f"{self._path}.bak"):
                if self._disk.exists(name):
                    self._disk.delete(name)
            self._disk.sync_dir(self._root)
            self.at = None
