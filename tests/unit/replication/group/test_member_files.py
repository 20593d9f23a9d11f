"""What a member of a raft group keeps beside its log."""

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.replication.group.files import MemberFiles, MemberState, stored_state
from gantrymq.replication.raft.log_view import EpochStart, LogView
from gantrymq.replication.raft.ready import StoredState
from gantrymq.testing.disk import MemoryDisk

STATE = MemberState(group="g", me="n0", term=3, vote="n1", boot_id="boot 0")
EPOCHS = (EpochStart(1, 0), EpochStart(2, 100), EpochStart(3, 200))


@pytest.mark.parametrize(
    "state, boot_id, may_vote",
    [
        (None, "boot 0", False),
        (STATE, "boot 0", True),
        (STATE, "boot 1", False),
        (MemberState(group="g", me="n0", boot_id="boot 0", is_synced=True), "boot 1", True),
        (MemberState(group="g", me="n0", boot_id="boot 0", may_vote=False), "boot 0", False),
    ],
    ids=["never ran", "same boot", "lost its memory", "had synced", "had no vote"],
)
def test_who_may_have_lost_something_has_no_vote(
    state: MemberState | None, boot_id: str, may_vote: bool
) -> None:
    """
    A process that dies loses nothing; a machine that does loses what was not synced.
    """
    assert may_vote is stored_state(state, boot_id).may_vote


def test_term_and_vote_are_what_was_saved() -> None:
    """
    Also after a power cut: they are synced when `save_state` returns.
    """
    disk = MemoryDisk()
    disk.make_dirs("store")
    disk.sync_dir("store")
    MemberFiles(disk, "store").save_state(STATE)
    left = MemberFiles(disk.after_kill(), "store").load_state()

    assert STATE == left
    assert StoredState(3, "n1") == stored_state(left, "boot 0")


def test_a_damaged_state_is_not_replaced_by_its_backup() -> None:
    """
    The backup has an older vote: with it the member could vote twice in a term.
    """
    disk = MemoryDisk()
    files = MemberFiles(disk, "store")
    files.save_state(STATE)
    files.save_state(STATE)
    disk.open("store/raft/state.json").pwrite(b"\0", 0)

    with pytest.raises(ConfigError, match="must not take part: move its store away"):
        files.load_state()


@pytest.mark.parametrize(
    "first, end, epochs",
    [
        (0, 250, EPOCHS),
        (0, 200, EPOCHS[:2]),
        (0, 150, EPOCHS[:2]),
        (100, 250, EPOCHS[:3]),
        (150, 250, EPOCHS[1:]),
        (0, 0, ()),
    ],
)
def test_rows_behind_the_end_of_the_log_were_never_written(
    first: int, end: int, epochs: tuple[EpochStart, ...]
) -> None:
    """
    A row is saved before its bytes; rows before the log keep the term of the byte before.
    """
    files = MemberFiles(MemoryDisk(), "store")
    files.save_epochs(EPOCHS)

    assert LogView(first, end, end, epochs) == files.load_log(first, end)


def test_a_log_without_its_table_is_refused() -> None:
    """
    Nobody could say which leader wrote it.
    """
    with pytest.raises(ConfigError, match="says nothing of the log from 0 on"):
        MemberFiles(MemoryDisk(), "store").load_log(0, 10)
