"""What a member of a raft group keeps on disk beside its log, in `raft/` below the store.

`state.json` has the term and the vote, `epochs.json` which term wrote which bytes of the log. Both
are replaced as a whole, and synced before anything that relies on them is done.
"""

from typing import Final, TypeVar

import msgspec

from gantrymq.base.disk import Disk
from gantrymq.base.errors import DECODE_ERRORS, ConfigError
from gantrymq.base.files import read_file, save_text
from gantrymq.replication.raft.log_view import EpochStart, LogView
from gantrymq.replication.raft.ready import StoredState

FOLDER: Final = "raft"

T = TypeVar("T")


class MemberState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """state.json."""

    group: str
    me: str
    term: int = 0
    vote: str | None = None
    may_vote: bool = True
    has_registry: bool = True
    """False from a new beginning of the log until the leader's tables were copied."""
    boot_id: str = ""
    """The machine's boot in which the member last ran."""
    is_synced: bool = False
    """Whether it acknowledged only what was synced (SYNC_FLUSH), or has stopped cleanly."""


class EpochTable(msgspec.Struct, frozen=True):
    """epochs.json."""

    epochs: tuple[EpochStart, ...] = ()


class MemberFiles:
    """Reads and writes the two files."""

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk, self._folder = disk, f"{root}/{FOLDER}"

    @property
    def _state_path(self) -> str:
        return f"{self._folder}/state.json"

    @property
    def _epochs_path(self) -> str:
        return f"{self._folder}/epochs.json"

    def load_state(self) -> MemberState | None:
        """What the member knew when it last ran; None if it never did."""
        text = self._load(self._state_path)
        return _decoded(self._state_path, text, MemberState) if text is not None else None

    def save_state(self, state: MemberState) -> None:
        """Durable when this returns."""
        save_text(self._disk, self._state_path, msgspec.json.encode(state).decode())

    def load_log(self, first: int, end: int) -> LogView:
        """The log as the rules see it: rows of the table behind its end were never written."""
        text = self._load(self._epochs_path)
        table = _decoded(self._epochs_path, text, EpochTable) if text is not None else EpochTable()
        known = tuple(epoch for epoch in table.epochs if epoch.offset < end)
        if end > first and (not known or known[0].offset > first):
            raise ConfigError(
                f"{self._epochs_path} says nothing of the log from {first} on: the store is not "
                "one of this raft group. Move it away and start this member empty"
            )
        return LogView(first, end, end, known).drop_before(first)

    def save_epochs(self, epochs: tuple[EpochStart, ...]) -> None:
        """Durable when this returns."""
        save_text(self._disk, self._epochs_path, msgspec.json.encode(EpochTable(epochs)).decode())

    def _load(self, path: str) -> str | None:
        """The text of a file. Its backup will not do: it has an older term, or fewer rows."""
        if not self._disk.exists(path):
            return None
        return read_file(self._disk, path).decode("utf-8", "replace")


def stored_state(state: MemberState | None, boot_id: str, *, damaged: bool = False) -> StoredState:
    """What the rules begin with.

    A member without files is empty: it may be new, or replace one that was lost, so it has no vote
    until it knows. One that had not synced what it acknowledged may have lost that with the
    machine's memory, and one whose log is damaged has lost it with its disk.
    """
    if state is None:
        return StoredState(may_vote=False)
    lost = damaged or (not state.is_synced and state.boot_id != boot_id)
    return StoredState(state.term, state.vote, state.may_vote and not lost)


def _decoded(path: str, text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except DECODE_ERRORS as error:
        raise ConfigError(
            f"{path} cannot be read: {error}. Without it this member must not take part: move its "
            "store away and start it empty; the group gives it everything again"
        ) from error
