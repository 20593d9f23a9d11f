"""From stored rows to the frames that marts are made of."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from martkit import NOON, frame

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.pipelines.staging import copies, coverage, group_progress, messages, spans
from gantrymq.protocol import trace
from gantrymq.spark.options.columns import COLUMNS

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("uncompiled")]


def raw(spark: Any, names: tuple[str, ...], rows: list[dict[str, Any]]) -> Any:
    """Rows as the source gives them; times are at noon."""
    found = frame(spark, ", ".join(f"{name} {COLUMNS[name]}" for name in names), [])
    at = datetime.fromtimestamp(NOON / 1000, UTC)
    plain = {"bornTimestamp": at, "storeTimestamp": at, "queueId": 0, "queueOffset": 0,
             "reconsumeTimes": 0, "storeSize": 9, "bodyCRC": 1, "brokerName": "b",
             "offsetMsgId": "place"}  # fmt: skip
    filled = [tuple((plain | row).get(name) for name in names) for row in rows]
    return spark.createDataFrame(filled, found.schema)


def test_trace_becomes_spans_deliveries_and_pubs(spark: Any) -> None:
    """Batches of Java's clients are one record with all ids; a repeated trace message counts once;
    an end without time and group takes both from its beginning; of two decisions about a
    transaction the first counts, as at the broker."""
    told = [
        trace.Pub(msg_id="a,b", at_ms=5, group="shop", topic="orders"),
        trace.Pub(msg_id="c", at_ms=6, group="shop", topic="orders", message_type=1),
        trace.EndTransaction(msg_id="c", at_ms=7, topic="orders", state="ROLLBACK_MESSAGE"),
        trace.EndTransaction(msg_id="c", at_ms=9, topic="orders", state="COMMIT_MESSAGE"),
        trace.SubBefore(msg_id="a", at_ms=10, group="billing", request_id="r1"),
        trace.SubAfter(msg_id="a", request_id="r1", cost_ms=4),
        trace.SubBefore(msg_id="b", at_ms=11, group="billing", request_id="r2"),
    ]
    body = "".join(map(trace.encode, told)).encode() + b"Strange\x01x\x02"
    found = spans.spans(raw(spark, ("body",), [{"body": body}, {"body": body}, {"body": b""}]))
    found.cache()

    tries = {tuple(row) for row in spans.deliveries(found).collect()}
    sent = {tuple(row) for row in spans.pubs(found).collect()}

    assert tries == {
        ("billing", "a", "r1", 10, 14, 4, True), ("billing", "b", "r2", 11, None, None, None),
    }  # fmt: skip
    assert sent == {
        ("orders", "a", 5, "shop", True, 0, None, False),
        ("orders", "b", 5, "shop", True, 0, None, False),
        ("orders", "c", 6, "shop", True, 1, "ROLLBACK_MESSAGE", False),
    }
    assert 1 == found.where("kind = 'unreadable'").count()


def test_a_message_tells_whether_it_is_inside_and_why_it_is_there_again(spark: Any) -> None:
    """The period's end is outside of it; marks of resending and replaying are told apart."""
    rows = [
        {"topic": "orders", "msgId": "a", "properties": {}},
        {"topic": "orders", "msgId": "b", "properties": {"GANTRY_RESENT_FROM": "x"}},
        {"topic": "orders", "msgId": "c", "properties": {"REPLAY_ID": "x"}},
    ]
    stored = raw(spark, messages.COLUMNS, rows)

    found = messages.messages(stored, since_ms=NOON, until_ms=NOON + 1).collect()
    outside = messages.messages(stored, until_ms=NOON).select("inside").distinct().collect()

    assert [(row.msgId, row.origin, row.inside, row.storedMs) for row in found] == [
        ("a", None, True, NOON), ("b", "resent", True, NOON), ("c", "replayed", True, NOON),
    ]  # fmt: skip
    assert [(False,)] == [tuple(row) for row in outside]


def test_copies_know_their_group_their_topic_and_their_message(spark: Any) -> None:
    """Retries in their topic, of a popping group, and in a waiting room; dead letters with a cause.
    A delayed message in the waiting room is no retry."""
    origin = {"RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "place-1"}
    rows = [
        {"topic": "%RETRY%a_b", "msgId": "m1", "properties": {**origin, "UNIQ_KEY": "m1"}},
        {"topic": "%RETRY%a_orders", "msgId": "m2", "properties": {**origin, "UNIQ_KEY": "m2"}},
        {"topic": "SCHEDULE_TOPIC_XXXX", "msgId": "place-9",
         "properties": {**origin, "REAL_TOPIC": "%RETRY%a_b"}},
        {"topic": "SCHEDULE_TOPIC_XXXX", "msgId": "m4", "properties": {"REAL_TOPIC": "orders"}},
    ]  # fmt: skip
    dead = [
        {"topic": "%DLQ%a_b", "msgId": "m5", "reconsumeTimes": 3,
         "properties": {"DLQ_ORIGIN_TOPIC": "orders", "UNIQ_KEY": "m5", "GANTRY_REASON": "closed"}},
        {"topic": "orders", "msgId": "m6", "properties": {}},
    ]  # fmt: skip
    owners = copies.owners_of(["a", "a_b"], ["orders"])

    retries = copies.retries(raw(spark, copies.COLUMNS, rows), owners).collect()
    letters = copies.dead_letters(raw(spark, copies.COLUMNS, dead)).collect()

    assert {(row.group, row.topic, row.msgId, row.parked) for row in retries} == {
        ("a_b", "orders", "m1", False), ("a", "orders", "m2", False),
        ("a_b", "orders", "place-1", True),
    }  # fmt: skip
    assert [(row.group, row.topic, row.msgId, row.tries, row.reason) for row in letters] == [
        ("a_b", "orders", "m5", 3, "closed")
    ]


# whether trace is complete


BEGUN = NOON - 60_000
NOW = NOON + 60_000
C1 = {("billing", "c1")}


def count(first: int, records: int, **given: Any) -> trace.TraceCount:
    plain = {"at_ms": NOON + first, "group": "billing", "side": "CONSUME", "client_id": "c1",
             "begun_ms": BEGUN, "first": first, "records": records, "met": 1,
             "members": (given.get("client_id", "c1"),)}  # fmt: skip
    return trace.TraceCount(**plain | given)


COVERED: dict[str, tuple[list[trace.TraceCount], int, set[tuple[str, str]], dict[str, Any]]] = {
    "all there, and still running": ([count(0, 2)], 2, C1, {"watched_ms": BEGUN}),
    "all there, and closed": ([count(0, 2), count(2, 3, closed=True)], 5, set(), {}),
    "one closed after the next one began": (
        [count(0, 2, at_ms=NOON + 9, closed=True),
         count(0, 2, client_id="c2", begun_ms=NOON + 9)], 4,
        {("billing", "c2")}, {"watched_ms": BEGUN},
    ),
    "one closed before the next one began": (
        [count(0, 2, at_ms=NOON + 9, closed=True),
         count(0, 2, client_id="c2", begun_ms=NOON + 10)], 4,
        {("billing", "c2")}, {"watched_ms": NOON + 10},
    ),
    "some dropped": (
        [count(0, 2, dropped=4), count(2, 3, dropped=7), count(5, 1, dropped=7)],
        6, C1, {"dropped": 7, "gap_ms": NOON + 2, "watched_ms": BEGUN},
    ),
    "a message is not there": (
        [count(0, 2), count(9, 3)], 5, C1,
        {"absent": 7, "gap_ms": NOON + 9, "watched_ms": BEGUN},
    ),
    "its begin has expired": (
        [count(50, 2)], 2, C1, {"absent": 50, "gap_ms": NOON + 50, "watched_ms": BEGUN},
    ),
    "killed": ([count(0, 2)], 2, set(), {"cut_off": 1}),
    "behind with its writing": (
        [count(0, 2, waiting=8)], 2, C1, {"waiting": 8, "watched_ms": BEGUN},
    ),
    "a member that does not trace": (
        [count(0, 2)], 2, C1 | {("billing", "c2")}, {"silent": 1, "watched_ms": BEGUN},
    ),
    "a member that does not trace has left": (
        [count(0, 2), count(2, 2, met=2, members=("c2",))], 4, C1,
        {"silent": 1, "watched_ms": BEGUN},
    ),
    "a member that traced no more when it came again": (
        [count(0, 2), count(0, 2, client_id="c2", closed=True)], 4, C1 | {("billing", "c2")},
        {"silent": 1, "watched_ms": BEGUN},
    ),
    "the record that names a member is missing": (
        [count(0, 2), count(2, 2, met=2)], 4, C1, {"unnamed": 1, "watched_ms": BEGUN},
    ),
    "members are not told": (
        [count(0, 2, met=0, members=())], 2, C1, {"unnamed": 1, "watched_ms": BEGUN},
    ),
    "also written by RocketMQ's clients": (
        [count(0, 2)], 6, C1, {"uncounted": 4, "watched_ms": BEGUN},
    ),
    "written by RocketMQ's clients": ([], 6, set(), {"uncounted": 6}),
    "another side and another group": (
        [count(0, 2), count(7, 1, side="PRODUCE"), count(7, 1, group="x")], 2, C1,
        {"watched_ms": BEGUN},
    ),
}  # fmt: skip


def test_what_is_missing_of_a_groups_trace_is_known(spark: Any) -> None:
    """Records by number, members by name, and the time in which nobody was there who traces."""
    wanted, found = {}, {}
    for case, (counts, records, online, told) in COVERED.items():
        bodies = [{"body": trace.encode(each).encode()} for each in counts] * 2
        spanned = spans.spans(raw(spark, ("body",), bodies))
        found[case] = coverage.coverage(spanned, {"billing": records}, online, NOW)
        wanted[case] = [coverage.Coverage(group="billing", **told)]

    assert wanted == found


def test_a_missing_record_means_something_only_where_all_members_trace() -> None:
    """And only for messages that were stored while such a member was there, and behind the gap."""
    slack = coverage.CLOCK_SLACK_MS
    watched = {"group": "g", "watched_ms": NOON}
    unsure: list[dict[str, Any]] = [
        {"watched_ms": None}, {"silent": 1}, {"unnamed": 1}, {"cut_off": 1}, {"uncounted": 1},
    ]  # fmt: skip

    assert coverage.Coverage(**watched).sure_ms == NOON + slack
    for given in unsure:
        assert coverage.Coverage(**watched | given).sure_ms is None
    gapped = coverage.Coverage(**watched, dropped=3, gap_ms=NOON + 9)
    assert (NOON + slack, NOON + 9 + slack) == (gapped.sure_ms, gapped.whole_ms)
    assert coverage.Coverage(**watched, waiting=3, gap_ms=NOON + 9).whole_ms is None


def test_a_gap_says_what_to_do() -> None:
    """How much is missing, why, and how to have it."""
    said = coverage.Coverage(group="g", dropped=56_062, cut_off=1).why()

    assert "the trace of group g is not complete: 56,062 trace records were dropped by" in said
    assert "run more consumers" in said
    assert "1 of its consumers ended without" in said
    assert "no consumer that traces is connected" in said
    said = coverage.Coverage(group="g", absent=1, silent=1, watched_ms=NOON).why()
    assert "1 trace record was written and not in the trace topic" in said
    assert "1 of its consumers did not trace: set trace=True for all" in said
    said = coverage.Coverage(group="g", watched_ms=NOON).why("Europe/Berlin")
    assert "without a break only since 2026-05-28 22:27:00.000+02:00" in said


# the history of lags


def snapshot(at_ms: int) -> group_progress.Snapshot:
    return [
        group_progress.row(at_ms, "g", Queue("t", "b", number), 10, 4, None) for number in range(2)
    ]


def test_history_grows_by_a_file_a_run_and_is_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost or doubled when many files become one, nor when that is cut off."""
    monkeypatch.setattr(group_progress, "FILES_MAX", 3)
    for at_ms in range(1, 4):
        group_progress.append(tmp_path, snapshot(at_ms))
    old = {path: path.read_bytes() for path in tmp_path.iterdir()}
    group_progress.append(tmp_path, snapshot(4))
    wanted = [row for at_ms in range(1, 5) for row in snapshot(at_ms)]

    assert 1 == len(list(tmp_path.iterdir()))
    assert wanted == group_progress.history(tmp_path)
    for path, data in old.items():
        path.write_bytes(data)  # as if the run had died before it took them away
    assert wanted == group_progress.history(tmp_path)
    assert [] == group_progress.history(tmp_path / "none")


def test_a_stranger_in_the_history_is_named(tmp_path: Path) -> None:
    """
    A file in the history folder that is no snapshot is an error that names it and says what to
    do.
    """
    (tmp_path / "lag-1.parquet").write_text("no table")
    with pytest.raises(ConfigError, match=r"lag-1.parquet is no snapshot of lags: remove it"):
        group_progress.history(tmp_path)


def test_a_stores_own_table_of_offsets_is_progress(tmp_path: Path) -> None:
    """A broker keeps `topic@group` and an offset a queue beside its log."""
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "consumerOffset.json"
    file.write_text('{"offsetTable": {"orders@billing": {"0": 7, "1": 9}}}')

    found = group_progress.stored_progress(tmp_path, "b", NOON)

    assert [(row["group"], row["topic"], row["queueId"], row["groupOffset"]) for row in found] == [
        ("billing", "orders", 0, 7), ("billing", "orders", 1, 9),
    ]  # fmt: skip
    assert [] == group_progress.stored_progress(tmp_path / "other", "b", NOON)
    file.write_text('{"offsetTable": {"orders@billing": 5}}')
    with pytest.raises(ConfigError, match=r"consumerOffset.json is no table of offsets"):
        group_progress.stored_progress(tmp_path, "b", NOON)
