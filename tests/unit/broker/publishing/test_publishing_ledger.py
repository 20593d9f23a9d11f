"""Notes about epochs, added up: what a broker knows after any row of them."""

import msgspec

from gantrymq.broker.publishing.ledger import (
    DAY_MS,
    HOLD_DAYS_MAX,
    IDLE_DAYS_MAX,
    Saved,
    WriterTable,
)
from gantrymq.broker.publishing.ledger import WRITERS_MAX as MANY
from gantrymq.broker.publishing.notes import (
    Decided,
    Enrolled,
    Intended,
    Note,
    PreparedNote,
    Published,
    encode,
)
from gantrymq.broker.publishing.notes import note_of as read
from gantrymq.protocol.publishing import EpochDecision, Stretch, WriterState
from gantrymq.protocol.record import StoredMessage

STRETCH = Stretch(0, 7, 3, "orders", 1, "ID")
DECISION = EpochDecision(shares={"a": [STRETCH], "b": []})


def decided(epoch: int, writer: str = "w") -> Note:
    return Decided(writer=writer, epoch=epoch, coordinator="a", decision=DECISION)


def ledger_of(*notes: Note | None) -> WriterTable:
    ledger = WriterTable()
    for number, note in enumerate(notes):
        ledger.apply(note, number, 1_000 + number, 5)
    return ledger


def stored(body: bytes) -> StoredMessage:
    return StoredMessage(
        topic="t", queue_id=0, queue_offset=0, physical_offset=0, body=body, flag=0, sys_flag=0,
        born_ms=0, born_host=("127.0.0.1", 1), store_ms=0, store_host=("127.0.0.1", 1),
        reconsume_times=0, prepared_offset=0, body_crc=0, size=0, raw_properties=b"",
    )  # fmt: skip


def test_the_first_decision_about_an_epoch_counts() -> None:
    """
    A later one for the same epoch, or for an older one, changes nothing.
    """
    other = Decided(writer="w", epoch=3, coordinator="a", decision=EpochDecision())
    ledger = ledger_of(decided(3), other, decided(2))

    assert DECISION == ledger.find("w").decision
    assert WriterState(coordinator="a", decided=3, complete=False) == ledger.find("w").state


def test_an_epoch_is_complete_when_its_coordinator_has_published() -> None:
    """
    The coordinator is asked last; its own end ends the epoch, and the list is forgotten.
    """
    ledger = ledger_of(
        decided(3),
        Intended(writer="w", epoch=3, share=[STRETCH]),
        Published(writer="w", epoch=3),
        Intended(writer="w", epoch=3, share=[STRETCH]),
    )
    entry = ledger.find("w")

    assert WriterState(coordinator="a", decided=3, complete=True, published=3) == entry.state
    assert {} == ledger.intents


def test_an_intent_remembers_where_it_lies() -> None:
    """
    Copies lie behind it; a repeated note does not move it.
    """
    intended = Intended(writer="w", epoch=3, share=[STRETCH])
    intent = ledger_of(decided(3), intended, intended).intents["w"]

    assert (3, [STRETCH], 1_001) == (intent.epoch, intent.share, intent.position)


def test_the_first_coordinator_stays() -> None:
    """
    Who keeps a writer's decisions never changes.
    """
    ledger = ledger_of(Enrolled(writer="w", coordinator="b"), Enrolled(writer="w", coordinator="c"))
    assert "b" == ledger.find("w").coordinator
    ledger.apply(decided(1), 2, 3, 4)  # by "a", which came too late
    assert -1 == ledger.find("w").decided


def test_unknown_writers_have_done_nothing() -> None:
    """
    And to ask leaves no trace.
    """
    ledger = WriterTable()
    assert WriterState() == ledger.find("nobody").state
    assert {} == ledger.writers


def test_notes_survive_the_log_and_foreign_ones_are_passed_over() -> None:
    """
    A note of a later release is skipped, its place is counted.
    """
    notes: list[Note] = [
        decided(1), Enrolled(writer="w", coordinator="b"), Published(writer="w", epoch=1),
        Intended(writer="w", epoch=1, share=[STRETCH]), PreparedNote(writer="w", epoch=1, lowest=9),
    ]  # fmt: skip
    assert notes == [read(stored(encode(note))) for note in notes]
    assert read(stored(b'{"type":"later"}')) is None
    assert 1 == ledger_of(None).position


def test_a_saved_ledger_is_the_same_again() -> None:
    """
    The file holds everything, running publications included.
    """
    ledger = ledger_of(decided(3), Intended(writer="w", epoch=3, share=[STRETCH]))
    again = WriterTable()
    again.load(msgspec.json.decode(msgspec.json.encode(ledger.saved()), type=Saved))

    assert ledger.writers == again.writers
    assert ledger.position == again.position


def test_idle_writers_are_forgotten_and_busy_ones_are_not() -> None:
    """
    After 30 days, unless something is still being published.
    """
    ledger = ledger_of(
        decided(1, "idle"),
        Published(writer="idle", epoch=1),
        decided(1, "busy"),
        Intended(writer="busy", epoch=1, share=[STRETCH]),
        decided(1, "open"),
        Published(writer="fresh", epoch=1),
    )
    ledger.writers["fresh"].used_ms = IDLE_DAYS_MAX * DAY_MS
    ledger.forget_idle(IDLE_DAYS_MAX * DAY_MS + 10)

    assert {"busy", "open", "fresh"} == set(ledger.writers)


def test_writers_of_one_epoch_are_forgotten_after_a_day() -> None:
    """
    Nobody comes back under their names; one that was left open stays as long as others do.
    """
    ledger = ledger_of(
        Published(writer="once-1", epoch=0), decided(0, "once-2"), Published(writer="w", epoch=0)
    )
    ledger.forget_idle(DAY_MS)
    assert 3 == len(ledger.writers)
    ledger.forget_idle(DAY_MS + 10)
    assert {"once-2", "w"} == set(ledger.writers)
    ledger.forget_idle(IDLE_DAYS_MAX * DAY_MS + 10)
    assert {} == ledger.writers


def test_writers_of_one_epoch_push_nobody_out() -> None:
    """
    However many batch writes there are, a job that comes back every night is still known.
    """
    ledger = ledger_of(Published(writer="nightly", epoch=7))
    for number in range(MANY + 2):
        ledger.apply(Published(writer=f"once-{number}", epoch=0), number, number, 1_000)
    ledger.forget_idle(2_000)

    assert MANY == len(ledger.writers)
    assert 7 == ledger.find("nightly").published


def test_there_is_a_limit_to_how_many_are_remembered() -> None:
    """
    The longest idle go first; whoever has an open epoch stays.
    """
    ledger = WriterTable()
    for number in range(MANY + 2):
        ledger.apply(Published(writer=f"{number}", epoch=1), number, number, number)
    ledger.apply(decided(2, "0"), MANY + 2, 0, 0)
    ledger.forget_idle(MANY)

    assert MANY == len(ledger.writers)
    assert "0" in ledger.writers
    assert not {"1", "2"} & set(ledger.writers)


def test_what_is_prepared_is_held_until_it_is_published_or_given_up() -> None:
    """
    From the lowest place that any driver of the epoch needs; a newer epoch takes its place.
    """
    ledger = ledger_of(
        PreparedNote(writer="w", epoch=3, lowest=700),
        PreparedNote(writer="w", epoch=3, lowest=900),
        PreparedNote(writer="w", epoch=2, lowest=100),
    )
    late = HOLD_DAYS_MAX * DAY_MS + 6

    assert [False, True] == [ledger.is_held(upto, 6) for upto in (700, 701)]
    assert not ledger.is_held(701, late)
    ledger.apply(PreparedNote(writer="w", epoch=3, lowest=950), 3, 0, late)
    assert [False, True] == [ledger.is_held(upto, late) for upto in (950, 951)]
    ledger.apply(PreparedNote(writer="w", epoch=4, lowest=980), 4, 0, late)
    assert [False, True] == [ledger.is_held(upto, late) for upto in (980, 981)]
    ledger.apply(Published(writer="w", epoch=4), 5, 0, late)
    ledger.apply(PreparedNote(writer="w", epoch=4, lowest=980), 6, 0, late)
    assert not ledger.is_held(981, late)
