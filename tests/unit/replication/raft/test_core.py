"""What a raft core refuses and ignores; what it does is told in tests/raft."""

import msgspec
import pytest

from gantrymq.replication.raft import (
    EpochStart,
    LogConflict,
    LogView,
    NotServing,
    RaftConfig,
    RaftCore,
    StoredState,
)
from gantrymq.replication.raft.messages import (
    AppendRequest,
    HeartbeatRequest,
    PreVoteAnswer,
    VoteRequest,
)
from gantrymq.replication.raft.ready import LogAppend, LogTruncation

CONFIG = RaftConfig(group="g", me="a", members=("a", "b", "c"))


def build(log: LogView | None = None, stored: StoredState | None = None) -> RaftCore:
    """A member with this disk."""
    log, stored = log or LogView(), stored or StoredState()
    return RaftCore(CONFIG, stored, log, lambda below: 0, lambda start, limit: limit)


def append(
    term: int, start: int, start_term: int, payload: bytes, commit: int = 0
) -> AppendRequest:
    """Bytes of leader b, all of its own term."""
    return AppendRequest(
        group="g",
        term=term,
        sender="b",
        receiver="a",
        start=start,
        start_term=start_term,
        size=len(payload),
        epochs=(EpochStart(term, start),) if payload else (),
        commit=commit,
        payload=payload,
    )


def test_a_member_has_to_be_in_its_group() -> None:
    """
    Wrong or doubled names are refused before anything starts.
    """
    with pytest.raises(ValueError, match="members"):
        RaftConfig(group="g", me="x", members=("a", "b"))
    with pytest.raises(ValueError, match="members"):
        RaftConfig(group="g", me="a", members=("a", "a"))


def test_strangers_and_other_groups_are_ignored() -> None:
    """
    A message that is not from a member, for this member, in this group changes nothing.
    """
    core = build()
    request = VoteRequest(group="g", term=5, sender="b", receiver="a", end=0, last_term=0)

    for field, value in (("group", "h"), ("sender", "x"), ("sender", "a"), ("receiver", "b")):
        core.step(msgspec.structs.replace(request, **{field: value}))

    assert not core.take_ready()
    assert 0 == core.term


def test_only_a_leader_writes() -> None:
    """
    Bytes that a follower wrote on its own are an error of the driver.
    """
    with pytest.raises(NotServing):
        build().grow(10)


def test_what_is_committed_is_never_cut() -> None:
    """
    A leader that asks for it breaks raft's promises, and the member stops.
    """
    core = build()
    core.step(append(1, 0, 0, b"one", commit=3))
    core.take_ready()

    with pytest.raises(LogConflict, match="cut"):
        core.step(append(2, 0, 0, b"two"))


def test_two_leaders_in_one_term_are_noticed() -> None:
    """
    A second leader of a term cannot be; whoever sees one stops.
    """
    core = build()
    core.step(append(1, 0, 0, b"one"))

    with pytest.raises(LogConflict, match="both lead"):
        core.step(HeartbeatRequest(group="g", term=1, sender="c", receiver="a", commit=0))


def test_uncommitted_bytes_may_not_be_deleted_by_retention() -> None:
    """
    Retention is refused beyond the commit.
    """
    core = build()
    core.step(append(1, 0, 0, b"one", commit=1))

    with pytest.raises(LogConflict, match="not committed"):
        core.note_first(2)


def test_a_sync_that_began_before_a_cut_says_nothing() -> None:
    """
    Bytes written after the cut are not taken for durable.
    """
    core = build()
    core.step(append(1, 0, 0, b"three"))
    before = core.cuts
    core.step(append(2, 0, 0, b"abc"))

    core.note_synced(5, before)

    assert 0 == core.log.synced
    core.note_synced(3, core.cuts)
    assert 3 == core.log.synced


def test_one_ready_may_cut_what_it_wrote() -> None:
    """
    Writes keep their order, and what was said in the older term is not said any more.
    """
    core = build()
    core.step(append(1, 0, 0, b"three"))
    core.step(append(2, 0, 0, b"abc"))

    ready = core.take_ready()

    kinds = [type(write) for write in ready.writes]
    assert [LogAppend, LogTruncation, LogAppend] == kinds
    assert [2] == [message.term for message in ready.after_sync]
    assert StoredState(2) == ready.state


def test_bytes_that_are_there_already_are_not_written_again() -> None:
    """
    Of an append that overlaps the log only the rest is written.
    """
    core = build()
    core.step(append(1, 0, 0, b"one"))
    core.step(append(1, 0, 0, b"onetwo"))

    written = [write.payload for write in core.take_ready().writes if isinstance(write, LogAppend)]

    assert [b"one", b"two"] == written


def test_confirmations_of_one_ready_are_one_message() -> None:
    """
    A follower that got several appends confirms the last offset once.
    """
    core = build()
    core.step(append(1, 0, 0, b"one"))
    core.step(msgspec.structs.replace(append(1, 3, 1, b"two"), epochs=(EpochStart(1, 0),)))

    (answer,) = core.take_ready().after_sync

    assert 6 == answer.offset  # type: ignore[attr-defined]


@pytest.mark.parametrize("agreed, role", [("b", "pre-candidate"), ("bc", "candidate")])
def test_a_member_without_a_vote_needs_the_consent_of_all(agreed: str, role: str) -> None:
    """
    A majority will do for others; its own vote does not count.
    """
    core = build(stored=StoredState(3, None, may_vote=False))
    core.campaign()

    for name in agreed:
        core.step(
            PreVoteAnswer(group="g", term=3, sender=name, receiver="a", asked_in=3, granted=True)
        )

    assert role == core.role.value
