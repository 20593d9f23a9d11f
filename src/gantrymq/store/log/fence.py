"""The file that says that a sync of the log failed, for the next start."""

from gantrymq.base.disk import Disk
from gantrymq.base.files import load_text, save_text


class Fence:
    """A small file with the offset up to which the log was known to be durable."""

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk, self._root, self._path = disk, root, f"{root}/fenced"
        text = load_text(disk, self._path)
        self.flushed = int(text) if text is not None and text.strip().isdigit() else None

    def raise_at(self, flushed: int) -> None:
        """Write the file."""
        save_text(self._disk, self._path, f"{flushed}\n")
        self.flushed = flushed

    def lift(self) -> None:
        """Delete the file: recovery has repaired the log."""
        if self.flushed is not None:
            for name in (self._path, f"{self._path}.bak"):
                if self._disk.exists(name):
                    self._disk.delete(name)
            self._disk.sync_dir(self._root)
            self.flushed = None
