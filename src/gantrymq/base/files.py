"""Small text files that survive a power cut, with RocketMQ's `.bak` beside them."""

import logging
from collections.abc import Callable
from typing import TypeVar

from gantrymq.base.disk import Disk, parent_of
from gantrymq.base.errors import ConfigError

log = logging.getLogger(__name__)

T = TypeVar("T")


def save_text(disk: Disk, path: str, text: str, *, private: bool = False) -> None:
    """Replace the file's text; after a crash either the old or the new text is found.

    The order is RocketMQ's (`.tmp`, `.bak`, then the name itself) with the syncs it leaves out.
    The old file keeps its name until the new one takes it in one step, so there is no moment
    without a readable file. A `private` text is at no moment readable for other users.
    """
    directory = parent_of(path)
    if not disk.exists(directory):
        disk.make_dirs(directory)
        disk.sync_dir(parent_of(directory))
    _write(disk, f"{path}.tmp", text.encode(), private)
    if disk.exists(path):
        _write(disk, f"{path}.bak.tmp", read_file(disk, path), private)
        if not private:
            disk.keep_mode(path, f"{path}.tmp")
            disk.keep_mode(path, f"{path}.bak.tmp")
        disk.rename(f"{path}.bak.tmp", f"{path}.bak")
    disk.rename(f"{path}.tmp", path)
    disk.sync_dir(directory)


def load_text(
    disk: Disk, path: str, usable: Callable[[str], bool] = lambda text: True
) -> str | None:
    """The file's text, or its backup's when the file is missing, empty or not `usable`.

    None when neither has any text: a table that was never saved.
    """
    for name in (path, f"{path}.bak"):
        if not disk.exists(name):
            continue
        try:
            text = read_file(disk, name).decode()
        except UnicodeDecodeError:
            continue
        if text.strip() and usable(text):
            return text
    return None


def load_parsed(disk: Disk, path: str, parse: Callable[[str], T]) -> T | None:
    """What the file says, or its backup if the file is missing, empty or damaged.

    None if neither has any text: it was never saved. Raises ConfigError if one is damaged and the
    other of no use: who begins without what stood there would soon write that down for good.
    """
    problems, is_empty = [], False
    for name in (path, f"{path}.bak"):
        if not disk.exists(name):
            continue
        data = read_file(disk, name)
        if not data.strip():
            is_empty = True
            continue
        try:
            found = parse(data.decode())
        except Exception as error:  # whatever a damaged text makes of its reader
            problems.append(str(error))
            continue
        if problems or is_empty:
            why = problems[0] if problems else "it is empty"
            log.warning("%s is damaged (%s); its backup is used", path, why)
        return found
    if problems:
        raise ConfigError(f"{path} and its backup cannot be read: {'; '.join(problems)}")
    return None


def read_file(disk: Disk, path: str) -> bytes:
    """The bytes of a small file."""
    file = disk.open_read(path)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def _write(disk: Disk, path: str, data: bytes, private: bool) -> None:
    file = disk.open(path, create=True)
    try:
        if private:
            disk.make_private(path)
        file.truncate(0)
        file.pwrite(data, 0)
        file.sync()
    finally:
        file.close()
