"""Small files beside a checkpoint: written whole or not at all, read back after a crash.

A folder is a local path or an address that Arrow's file systems know (`s3://`, `hdfs://`): drivers
and executors of a cluster see the same one.
"""

import os
import re
from pathlib import Path
from typing import Any, Final

from gantrymq.base.errors import GantryError

_LOCAL: Final = re.compile(r"file:(?://)?(?=/)")
_ADDRESS: Final = re.compile(r"[a-z0-9+]{2,}://")


class StateFailed(GantryError):
    """A file of the state folder could not be read or written."""


def read_state(folder: str, name: str) -> bytes | None:
    """The content of a file; None when there is none."""
    try:
        if _is_remote(folder):
            files, root = _files(folder)
            with files.open_input_stream(f"{root}/{name}") as stream:
                return bytes(stream.read())
        return (_path(folder) / name).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateFailed(f"cannot read {name} in startStatePath {folder}: {error}") from error


def write_state(folder: str, name: str, content: bytes) -> None:
    """Replace a file in one step. When this returns, the file is durable."""
    try:
        if _is_remote(folder):
            files, root = _files(folder)
            files.create_dir(f"{root}/{name}".rpartition("/")[0], recursive=True)
            with files.open_output_stream(f"{root}/{name}.tmp") as stream:
                stream.write(content)
            files.move(f"{root}/{name}.tmp", f"{root}/{name}")
        else:
            _write_local(_path(folder) / name, content)
    except OSError as error:
        raise StateFailed(f"cannot write {name} in startStatePath {folder}: {error}") from error


def _is_remote(folder: str) -> bool:
    return bool(_ADDRESS.match(folder)) and not _LOCAL.match(folder)


def _files(folder: str) -> tuple[Any, str]:
    from pyarrow import fs  # only for folders that are not on this machine

    files, root = fs.FileSystem.from_uri(folder)
    return files, str(root).rstrip("/")


def _path(folder: str) -> Path:
    return Path(_LOCAL.sub("", folder))


def _write_local(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
