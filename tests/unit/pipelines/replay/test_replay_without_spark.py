"""Replaying without Spark: what is asked for, how it is cut, what is kept on disk."""

import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from click.testing import CliRunner

from gantrymq.base.disk import LockedError
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.cli.pipeline.replay import replay
from gantrymq.filter import BadSql
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.pipelines.common.selection import Selection, match_condition
from gantrymq.pipelines.replay.chunks import Chunk, CountedBlock, by_day, chunked
from gantrymq.pipelines.replay.journal import Journal, ReplayPlan
from gantrymq.pipelines.replay.request import (
    Origin,
    ReplayRequest,
    check_request,
    parse_origin,
    parse_rate,
)
from gantrymq.pipelines.replay.run import seconds_to_wait

NOW = 1_790_000_000_000
HERE = "127.0.0.1:9876"
Q0, Q1 = (Queue("orders", "broker-a", number) for number in range(2))
SPARE = 1 << 40


def block(queue: Queue, number: int, rows: int, ms: int, day: str = "2026-01-01") -> CountedBlock:
    """Neighbouring messages, ten offsets a block."""
    first = 10 * number
    return CountedBlock(queue, number, day, rows, 100 * rows, first, first + rows - 1, ms, ms + 5)


def asked(**words: object) -> ReplayRequest:
    plain = {"origin": Origin("topic", "orders"), "topic": "orders", "into": "orders-again"}
    return ReplayRequest(**{**plain, "since": "2h ago", **words})  # type: ignore[arg-type]


# cutting


def test_chunks_follow_the_time_and_keep_queues_side_by_side() -> None:
    """
    What was stored together is replayed together.
    """
    counts = [block(Q0, 0, 10, 100), block(Q0, 1, 10, 300), block(Q1, 0, 10, 200)]

    chunks = chunked(reversed(counts), 20, SPARE)

    assert [
        Chunk(20, 100, 205, (OffsetRange(Q0, 0, 10), OffsetRange(Q1, 0, 10))),
        Chunk(10, 300, 305, (OffsetRange(Q0, 10, 20),)),
    ] == chunks


def test_a_clock_that_was_set_back_does_not_turn_a_queue_round() -> None:
    """
    A later block of a queue is never in an earlier chunk, whatever time it claims.
    """
    counts = [block(Q0, 0, 10, 500), block(Q0, 1, 10, 100), block(Q1, 0, 10, 300)]

    chunks = chunked(counts, 10, SPARE)

    assert [[Q1], [Q0], [Q0]] == [[each.queue for each in chunk.ranges] for chunk in chunks]
    assert [0, 10] == [chunk.ranges[0].start for chunk in chunks[1:]]


def test_chunks_are_bounded_by_messages_and_by_bytes() -> None:
    """
    A chunk is staged as a whole: neither many small nor few large messages make it huge.
    """
    counts = [block(Q0, number, 10, number) for number in range(6)]

    assert [30, 30] == [chunk.rows for chunk in chunked(counts, 39, SPARE)]
    assert [20, 20, 20] == [chunk.rows for chunk in chunked(counts, 60, 2_000)]
    assert [10] * 6 == [chunk.rows for chunk in chunked(counts, 5, SPARE)]
    assert [] == chunked([], 5, SPARE)


def test_a_block_counted_in_two_days_is_one_block() -> None:
    """
    Days are counted apart, but a block is not torn where the clock passed midnight twice.
    """
    one = CountedBlock(Q0, 0, "2026-01-01", 2, 20, 0, 8, 10, 18)
    two = CountedBlock(Q0, 0, "2026-01-02", 3, 30, 3, 9, 20, 29)

    assert [Chunk(5, 10, 29, (OffsetRange(Q0, 0, 10),))] == chunked([two, one], 100, SPARE)
    assert [("2026-01-01", 2), ("2026-01-02", 3)] == [
        (each.day, each.messages) for each in by_day([two, one])
    ]


def test_a_rate_is_kept_over_the_whole_run() -> None:
    """
    What was sent may not be more than the time since the beginning allows.
    """
    assert 0.0 == seconds_to_wait(1_000_000, None, 1.0)
    assert 0.0 == seconds_to_wait(0, 100, 0.0)
    assert 1.5 == seconds_to_wait(200, 100, 0.5)
    assert 0.0 == seconds_to_wait(200, 100, 30.0)


# asking


def test_an_origin_is_a_topic_store_files_or_an_archive() -> None:
    """
    A path needs no word in front of it.
    """
    assert Origin("topic", "orders") == parse_origin("topic:orders")
    assert Origin("store", "/data/store") == parse_origin("store:/data/store")
    assert Origin("archive", "s3://lake/t") == parse_origin("s3://lake/t")
    assert Origin("archive", "lake/t") == parse_origin("archive:lake/t")
    with pytest.raises(ConfigError, match="is no origin"):
        parse_origin("topic:")


def test_a_rate_is_messages_a_second() -> None:
    """
    With or without the unit.
    """
    assert [500, 500] == [parse_rate("500/s"), parse_rate(" 500 ")]
    for bad in ("0", "fast", "-1", "5/m", "99999999999"):
        with pytest.raises(ConfigError, match="a rate is messages a second"):
            parse_rate(bad)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"since": None}, "nothing says which messages"),
        ({"into": "orders"}, "--same-topic"),
        ({"into": "SCHEDULE_TOPIC_XXXX"}, "topic of the system"),
        ({"into": "RMQ_SYS_TRANS_HALF_TOPIC"}, "topic of the system"),
        ({"into": "%DLQ%group"}, "topic of the system"),
        ({"into": "rmq_sys_wheel_timer"}, "topic of the system"),
        ({"into": "no such/name"}, "illegal characters"),
        ({"topic": "payments"}, "has no messages of the topic payments"),
        ({"since": "soon"}, "is no time that is known here"),
        ({"since": "now", "until": "yesterday"}, "there is no time between"),
        ({"zone": "Mars/Olympus", "since": "today"}, "no time zone"),
        ({"keys": ("two words",)}, "single words"),
        ({"ids": ("",)}, "single words"),
        ({"ids": ("x",) * 10_001}, "more than 10000"),
        ({"order": "size"}, "order is kept by"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(words: dict[str, object], problem: str) -> None:
    """
    Before Spark starts and before anything is read or sent.
    """
    with pytest.raises(GantryError, match=problem):
        check_request(asked(**words), NOW)


def test_bad_sql_is_refused_with_its_place() -> None:
    """
    The condition is read before anything else happens.
    """
    with pytest.raises(BadSql):
        check_request(asked(sql="amount >"), NOW)


def test_what_is_meant_on_purpose_is_taken() -> None:
    """
    Everything with a word, the same topic with a word, a dead-letter topic as the origin.
    """
    check_request(asked(since=None, everything=True), NOW)
    check_request(asked(into="orders", same_topic=True), NOW)
    dead = Origin("topic", "%DLQ%group")
    check_request(asked(origin=dead, topic="%DLQ%group", into="orders"), NOW)

    assert Selection(since_ms=NOW - 7_200_000) == asked().selection(NOW)[0]


# choosing by SQL


def test_sql_means_what_it_means_to_a_broker() -> None:
    """
    A property that is missing makes a comparison unknown, and NOT of unknown is unknown.
    """
    rows = [{"amount": "12"}, {"amount": "7"}, {"other": "1"}, {}]
    found = pa.array([list(row.items()) for row in rows], pa.map_(pa.string(), pa.string()))

    assert [True, False, False, False] == match_condition(found, "amount > 10").to_pylist()
    assert [False, True, False, False] == match_condition(found, "NOT (amount > 10)").to_pylist()
    assert [False, False, True, True] == match_condition(found, "amount IS NULL").to_pylist()
    assert [True, False] == match_condition(found[1:3], "amount = 7").to_pylist()
    assert [] == match_condition(found[:0], "amount = 7").to_pylist()


# keeping


def plan_of(request: ReplayRequest, now: int = NOW, chunks: int = 3) -> ReplayPlan:
    return ReplayPlan(
        id=f"{now}-{request.fingerprint()}",
        begun_ms=now,
        request=request,
        selection=request.selection(now)[0],
        namesrv=HERE,
        queues=(Q0, Q1),
        tasks=2,
        chunks=tuple(
            Chunk(10, 0, 9, (OffsetRange(Q0, 10 * at, 10 * at + 10),)) for at in range(chunks)
        ),
        days=(),
    )


def test_a_plan_is_found_by_the_words_it_was_asked_with(tmp_path: Path) -> None:
    """
    `2h ago` means what it meant when the replay began, and other words are another replay.
    """
    journal, plan = Journal(tmp_path), plan_of(asked())
    journal.save(plan)
    journal.advance(plan, 2)

    assert plan == journal.unfinished(asked(), HERE)
    assert plan == journal.load(plan.id)
    assert 2 == journal.done(plan)
    assert None is journal.unfinished(asked(since="3h ago"), HERE)
    assert None is journal.unfinished(asked(), "elsewhere:9876")


def test_a_replay_that_is_done_or_dropped_is_not_gone_on_with(tmp_path: Path) -> None:
    """
    The same words then begin another one.
    """
    journal = Journal(tmp_path / "new")
    assert None is journal.unfinished(asked(), HERE)
    old, new = plan_of(asked(), NOW), plan_of(asked(), NOW + 1)
    journal.save(old)
    journal.save(new)
    assert new == journal.unfinished(asked(), HERE)
    journal.advance(new, 3)
    assert old == journal.unfinished(asked(), HERE)
    journal.drop(old)

    assert None is journal.unfinished(asked(), HERE)


def test_two_runs_do_not_work_on_one_replay(tmp_path: Path) -> None:
    """
    The second is refused, and may come when the first is gone.
    """
    journal, plan = Journal(tmp_path), plan_of(asked())
    journal.save(plan)

    with journal.claim(plan), pytest.raises(LockedError), journal.claim(plan):
        pass
    with journal.claim(plan):
        assert 0 == journal.done(plan)


def test_history_survives_a_line_that_was_cut_off(tmp_path: Path) -> None:
    """
    A crash in the middle of a line loses that line and no other.
    """
    journal = Journal(tmp_path)
    assert [] == journal.history()
    journal.note({"id": "a"})
    with (tmp_path / "replays.jsonl").open("ab") as file:
        file.write(b'{"id": "b", "wh')
    journal.note({"id": "c"})

    assert [{"id": "a"}, {"id": "c"}] == journal.history()


def test_a_replay_nobody_knows_is_an_error(tmp_path: Path) -> None:
    """
    Also for names that would lead out of the folder, and for plans that were damaged.
    """
    journal = Journal(tmp_path)
    for name in ("nothing", "", "../x"):
        with pytest.raises(ConfigError, match="there is no replay"):
            journal.load(name)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "plan.json").write_text("{}")
    with pytest.raises(GantryError, match="cannot be read"):
        journal.load("bad")


def test_a_dry_run_of_a_known_replay_shows_its_plan_and_sends_nothing(tmp_path: Path) -> None:
    """
    Neither Spark nor a broker is asked: the plan is on disk.
    """
    journal, plan = Journal(tmp_path), plan_of(asked())
    journal.save(plan)
    journal.advance(plan, 1)
    place = ["-n", "127.0.0.1:1", "--state", str(tmp_path), "-o", "json"]

    ended = CliRunner().invoke(replay, ["--resume", plan.id, "--dry-run", "--rate", "10/s", *place])

    assert (0, []) == (ended.exit_code, json.loads(ended.stdout))
    assert ended.stderr.startswith("30 messages, 0 bytes would be sent into orders-again")
    assert "in 3 chunks, 2 s at 10/s, 10 of them are sent already" in ended.stderr
    assert (1, []) == (journal.done(plan), journal.history())


def test_a_plan_comes_back_as_it_was_written() -> None:
    """
    Everything that the choice depends on is in the file.
    """
    plan = plan_of(asked(keys=("k",), sql="a = 1", ids=("ID",)))

    assert plan == msgspec.json.decode(msgspec.json.encode(plan), type=ReplayPlan)
