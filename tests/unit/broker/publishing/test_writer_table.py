"""Notes about epochs, added up: what a broker knows after any row of them."""

import msgspec

from gantrymq.broker.publishing.notes import (
    DecidedNote,
    EnrolledNote,
    IntendedNote,
    Note,
    PreparedNote,
    PublishedNote,
    encode,
)
from gantrymq.broker.publishing.notes import note_of as read
from gantrymq.broker.publishing.writer_table import (
    DAY_MS,
    HOLD_DAYS_MAX,
    IDLE_DAYS_MAX,
    WriterFile,
    WriterTable,
)
from gantrymq.broker.publishing.writer_table import WRITERS_MAX as MANY
from gantrymq.protocol.publishing import EpochDecision, Stretch, WriterState
from gantrymq.protocol.record import StoredMessage

STRETCH = Stretch(0, 7, 3, "orders", 1, "ID")
DECISION = EpochDecision(shares={"a": [STRETCH], "b": []})


def decided(epoch: int, writer: str = "w") -> Note:
    return DecidedNote(writer=writer, epoch=epoch, coordinator="a", decision=DECISION)


def table_of(*notes: Note | None) -> WriterTable:
    writers = WriterTable()
    for number, note in enumerate(notes):
        writers.apply(note, number, 1_000 + number, 5)
    return writers


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
    other = DecidedNote(writer="w", epoch=3, coordinator="a", decision=EpochDecision())
    writers = table_of(decided(3), other, decided(2))

    assert DECISION == writers.find("w").decision
    assert WriterState(coordinator="a", decided=3, complete=False) == writers.find("w").state


def test_an_epoch_is_complete_when_its_coordinator_has_published() -> None:
    """
    The coordinator is asked last; its own end ends the epoch, and the list is forgotten.
    """
    writers = table_of(
        decided(3),
        IntendedNote(writer="w", epoch=3, share=[STRETCH]),
        PublishedNote(writer="w", epoch=3),
        IntendedNote(writer="w", epoch=3, share=[STRETCH]),
    )
    entry = writers.find("w")

    assert WriterState(coordinator="a", decided=3, complete=True, published=3) == entry.state
    assert {} == writers.intents


def test_an_intent_remembers_where_it_lies() -> None:
    """
    Copies lie behind it; a repeated note does not move it.
    """
    intended = IntendedNote(writer="w", epoch=3, share=[STRETCH])
    intent = table_of(decided(3), intended, intended).intents["w"]

    assert (3, [STRETCH], 1_001) == (intent.epoch, intent.share, intent.position)


def test_the_first_coordinator_stays() -> None:
    """
    Who keeps a writer's decisions never changes.
    """
    writers = table_of(
        EnrolledNote(writer="w", coordinator="b"), EnrolledNote(writer="w", coordinator="c")
    )
    assert "b" == writers.find("w").coordinator
    writers.apply(decided(1), 2, 3, 4)  # by "a", which came too late
    assert -1 == writers.find("w").decided


def test_unknown_writers_have_done_nothing() -> None:
    """
    And to ask leaves no trace.
    """
    writers = WriterTable()
    assert WriterState() == writers.find("nobody").state
    assert {} == writers.writers


def test_notes_survive_the_log_and_foreign_ones_are_passed_over() -> None:
    """
    A note of a later release is skipped, its place is counted.
    """
    notes: list[Note] = [
        decided(1),
        EnrolledNote(writer="w", coordinator="b"),
        PublishedNote(writer="w", epoch=1),
        IntendedNote(writer="w", epoch=1, share=[STRETCH]),
        PreparedNote(writer="w", epoch=1, lowest=9),
    ]
    assert notes == [read(stored(encode(note))) for note in notes]
    assert read(stored(b'{"type":"later"}')) is None
    assert 1 == table_of(None).position


def test_a_saved_ledger_is_the_same_again() -> None:
    """
    The file holds everything, running publications included.
    """
    writers = table_of(decided(3), IntendedNote(writer="w", epoch=3, share=[STRETCH]))
    again = WriterTable()
    again.load(msgspec.json.decode(msgspec.json.encode(writers.saved()), type=WriterFile))

    assert writers.writers == again.writers
    assert writers.position == again.position


def test_idle_writers_are_forgotten_and_busy_ones_are_not() -> None:
    """
    After 30 days, unless something is still being published.
    """
    writers = table_of(
        decided(1, "idle"),
        PublishedNote(writer="idle", epoch=1),
        decided(1, "busy"),
        IntendedNote(writer="busy", epoch=1, share=[STRETCH]),
        decided(1, "open"),
        PublishedNote(writer="fresh", epoch=1),
    )
    writers.writers["fresh"].used_ms = IDLE_DAYS_MAX * DAY_MS
    writers.forget_idle(IDLE_DAYS_MAX * DAY_MS + 10)

    assert {"busy", "open", "fresh"} == set(writers.writers)


def test_writers_of_one_epoch_are_forgotten_after_a_day() -> None:
    """
    Nobody comes back under their names; one that was left open stays as long as others do.
    """
    writers = table_of(
        PublishedNote(writer="once-1", epoch=0),
        decided(0, "once-2"),
        PublishedNote(writer="w", epoch=0),
    )
    writers.forget_idle(DAY_MS)
    assert 3 == len(writers.writers)
    writers.forget_idle(DAY_MS + 10)
    assert {"once-2", "w"} == set(writers.writers)
    writers.forget_idle(IDLE_DAYS_MAX * DAY_MS + 10)
    assert {} == writers.writers


def test_writers_of_one_epoch_push_nobody_out() -> None:
    """
    However many batch writes there are, a job that comes back every night is still known.
    """
    writers = table_of(PublishedNote(writer="nightly", epoch=7))
    for number in range(MANY + 2):
        writers.apply(PublishedNote(writer=f"once-{number}", epoch=0), number, number, 1_000)
    writers.forget_idle(2_000)

    assert MANY == len(writers.writers)
    assert 7 == writers.find("nightly").published


def test_there_is_a_limit_to_how_many_are_remembered() -> None:
    """
    The longest idle go first; whoever has an open epoch stays.
    """
    writers = WriterTable()
    for number in range(MANY + 2):
        writers.apply(PublishedNote(writer=f"{number}", epoch=1), number, number, number)
    writers.apply(decided(2, "0"), MANY + 2, 0, 0)
    writers.forget_idle(MANY)

    assert MANY == len(writers.writers)
    assert "0" in writers.writers
    assert not {"1", "2"} & set(writers.writers)


def test_what_is_prepared_is_held_until_it_is_published_or_given_up() -> None:
    """
    From the lowest place that any driver of the epoch needs; a newer epoch takes its place.
    """
    writers = table_of(
        PreparedNote(writer="w", epoch=3, lowest=700),
        PreparedNote(writer="w", epoch=3, lowest=900),
        PreparedNote(writer="w", epoch=2, lowest=100),
    )
    late = HOLD_DAYS_MAX * DAY_MS + 6

    assert [False, True] == [writers.is_held(upto, 6) for upto in (700, 701)]
    assert not writers.is_held(701, late)
    writers.apply(PreparedNote(writer="w", epoch=3, lowest=950), 3, 0, late)
    assert [False, True] == [writers.is_held(upto, late) for upto in (950, 951)]
    writers.apply(PreparedNote(writer="w", epoch=4, lowest=980), 4, 0, late)
    assert [False, True] == [writers.is_held(upto, late) for upto in (980, 981)]
    writers.apply(PublishedNote(writer="w", epoch=4), 5, 0, late)
    writers.apply(PreparedNote(writer="w", epoch=4, lowest=980), 6, 0, late)
    assert not writers.is_held(981, late)
