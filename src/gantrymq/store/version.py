"""Which release wrote a store, and which releases can read it: the file `store.json`.

The bytes of log, queues and index are RocketMQ's and do not change. What is ours may: the
checkpoint's own part, tables that only we have. `FORMAT` counts such changes. A release that makes
one says in `oldest_reader` which format a release has to know to open the store: as long as that
stays, one can go back to an older release. RocketMQ does not look at the file.
"""

import logging
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import msgspec

from gantrymq.base.disk import Disk
from gantrymq.base.files import load_text, save_text
from gantrymq.store.errors import StoreError

log = logging.getLogger(__name__)

FILE: Final = "store.json"
FORMAT: Final = 1
"""The format that this release writes."""
OLDEST_READER: Final = 1
"""A release that knows this format can open what this release writes."""


class StoreVersion(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """store.json."""

    format: int = FORMAT
    oldest_reader: int = OLDEST_READER
    written_by: str = ""
    """The release that opened the store last."""


def this_release() -> str:
    """The name of this release."""
    try:
        return version("gantrymq")
    except PackageNotFoundError:
        return "unknown"


def load_version(disk: Disk, root: str) -> StoreVersion | None:
    """What the store says of itself; None for a store of RocketMQ, or of before this file."""
    text = load_text(disk, f"{root}/{FILE}", _is_readable)
    return msgspec.json.decode(text, type=StoreVersion) if text is not None else None


def _is_readable(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=StoreVersion)
    except msgspec.DecodeError:
        return False
    return True


def check_version(disk: Disk, root: str) -> None:
    """Raise StoreError if the store was written by a release that this one cannot follow."""
    found = load_version(disk, root)
    if found is None and disk.exists(f"{root}/{FILE}"):
        log.warning("%s/%s cannot be read: the store counts as one of RocketMQ", root, FILE)
    if found is not None and found.oldest_reader > FORMAT:
        raise StoreError(
            f"{root} was written by GantryMQ {found.written_by} in format {found.format}, which "
            f"takes a release that knows format {found.oldest_reader}; this is "
            f"{this_release()}, which knows format {FORMAT}. Start that release or a newer one, or "
            "restore a snapshot from before the upgrade. Nothing was changed"
        )


def record_version(disk: Disk, root: str) -> None:
    """Note that this release writes the store now; what is noted already is not written again."""
    mine = StoreVersion(written_by=this_release())
    if load_version(disk, root) != mine:
        save_text(disk, f"{root}/{FILE}", msgspec.json.encode(mine).decode() + "\n")
