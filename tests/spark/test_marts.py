"""Marts on a few rows that were counted by hand."""

from datetime import UTC, datetime
from typing import Any

import pytest
from martkit import (
    MINUTE,
    NOON,
    dead_frame,
    frame,
    message,
    messages_frame,
    progress_frame,
    pubs_frame,
    retries_frame,
    shown,
    table,
    tries_frame,
)

from gantrymq.pipelines.marts import (
    causes,
    duplicates,
    lag,
    latency,
    ledger,
    skew,
    standing,
    traffic,
)
from gantrymq.pipelines.marts.mart import CheckFailed, Field, Mart, check_agree, check_rows
from gantrymq.pipelines.report.steps import POINTS_MAX, step_for

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("uncompiled")]

NUMBERS = Mart(
    "numbers", "Numbers", "", (Field("name", "string", "Name"), Field("count", "bigint", "Count")),
    key=("name",), rows_max=3,
)  # fmt: skip


@pytest.mark.parametrize(
    "rows, why",
    [
        ([{"name": "a", "count": None}], r"mart numbers fails its check: 1 row has no count: \{"),
        ([{"name": "a", "count": 1}] * 2, r"its key \(name\) comes twice: \('a',\)"),
        ([{"name": str(n), "count": 1} for n in range(4)], "more than 3 rows: choose topics"),
    ],
)
def test_a_broken_promise_is_an_error_with_examples(rows: list[Any], why: str) -> None:
    """The mart, the check and some of the rows are named."""
    with pytest.raises(CheckFailed, match=why):
        check_rows(NUMBERS, rows)


def test_sums_that_differ_are_an_error() -> None:
    """Both numbers are shown, with the key they belong to."""
    check_agree(NUMBERS, "in and out", {"a": 1}, {"a": 1, "b": 0})
    with pytest.raises(
        CheckFailed, match="numbers fails its check: in and out must agree: a: 1 an"
    ):
        check_agree(NUMBERS, "in and out", {"a": 1}, {"a": 2})


def test_a_frame_with_other_columns_is_an_error(spark: Any) -> None:
    """A mart that forgets a column, or changes its type, is not reported."""
    with pytest.raises(CheckFailed, match="its columns are name string, count int instead of"):
        table(NUMBERS, spark.createDataFrame([("a", 1)], "name string, count int"))


def stand(
    spark: Any, messages: Any, *, tries: Any = (), dead: Any = (), retries: Any = (),
    progress: Any = (), subscriptions: Any = (), copies_known: bool = True,
) -> Any:  # fmt: skip
    singles = standing.distinct(messages)
    frames = (
        tries_frame(spark, tries), dead_frame(spark, dead), retries_frame(spark, retries),
        progress_frame(spark, progress),
    )  # fmt: skip
    readers = standing.readers(singles, *frames)
    wanted = spark.createDataFrame(list(subscriptions), standing.SUBSCRIPTIONS)
    return standing.standing(singles, readers, *frames, wanted, copies_known=copies_known)


def states(found: Any) -> dict[str, str]:
    return {row.msgId: row.state for row in found.collect()}


def test_every_message_is_in_one_state_by_trace(spark: Any) -> None:
    """Ten messages, ten ends; the group traces and has read up to offset 8."""
    messages = messages_frame(spark, [message(n, tags="x" if n == 5 else None) for n in range(10)])
    tries = [
        ("billing", "m0", True),
        ("billing", "m1", False), ("billing", "m1", True),
        ("billing", "m2", False),
        ("billing", "m3", False),
        ("billing", "m4", None),
        ("billing", "m7", False),
        ("billing", "m8", None),
    ]  # fmt: skip
    found = stand(
        spark,
        messages,
        tries=tries,
        dead=[{"msgId": "m2"}],
        retries=[
            {"msgId": "m1", "queueOffset": 0, "tries": 1},
            {"msgId": "m3", "queueOffset": 1, "tries": 1},
        ],
        progress=[{"groupOffset": 8}, {"topic": "%RETRY%billing", "groupOffset": 1}],
        subscriptions=[("billing", "orders", ["", "y"], True)],
    )
    found.cache()

    assert states(found) == {
        "m0": standing.ACKNOWLEDGED, "m1": standing.ACKNOWLEDGED, "m2": standing.DEAD,
        "m3": standing.RETRYING, "m4": standing.UNFINISHED, "m5": standing.UNWANTED,
        "m6": standing.PASSED_BY, "m7": standing.DROPPED, "m8": standing.IN_HAND,
        "m9": standing.WAITING,
    }  # fmt: skip
    counted = table(ledger.GROUPS, ledger.group_ledger(found))
    assert counted.rows == [
        {"topic": "orders", "group": "billing", "basis": "trace", "messages": 10, "delivered": 7,
         "acknowledged": 2, "dead": 1, "retrying": 1, "waiting": 1, "inHand": 1, "unwanted": 1,
         "earlier": 0, "unknown": 0, "passedBy": 1, "unfinished": 1, "dropped": 1,
         "untraced": 0}
    ]  # fmt: skip


def test_what_is_missing_in_an_incomplete_trace_is_not_known(spark: Any) -> None:
    """From the time on when the trace has no more gaps, what is missing counts again."""
    rows = messages_frame(spark, [message(n) for n in range(4)])
    found = stand(
        spark, rows, tries=[("billing", "m0", True), ("billing", "m1", None)],
        progress=[{"groupOffset": 4}],
    )  # fmt: skip
    assert {"billing": 5} == standing.missing_records(found)

    until = spark.createDataFrame([("billing", NOON + 3000), ("other", None)], standing.GAPS)
    excused = standing.excuse(found, until)
    excused.cache()

    assert states(excused) == {
        "m0": standing.ACKNOWLEDGED, "m1": standing.UNTRACED, "m2": standing.UNTRACED,
        "m3": standing.PASSED_BY,
    }  # fmt: skip
    empty = messages_frame(spark, []), pubs_frame(spark, [])
    sent = ledger.sent(
        empty[1], empty[0], topics=["orders"], since_ms=None, until_ms=None, kept_since_ms=None
    )
    kinds = table(
        ledger.KINDS, ledger.kinds(ledger.differences(standing.distinct(rows), sent, excused))
    )
    assert shown(kinds, "what", "explained", "messages") == [
        ("passed by", False, 1), ("trace missing", None, 2),
    ]  # fmt: skip


def test_a_group_that_began_at_the_end_has_passed_nothing_by(spark: Any) -> None:
    """What lay there before its first delivery is told apart from what it should have got."""
    rows = [message(n, storedMs=NOON + n) for n in range(5)] + [
        message(5, queueId=1, storedMs=NOON)
    ]
    tries = [("billing", "m2", True), ("billing", "m4", True)]

    found = stand(
        spark, messages_frame(spark, rows), tries=tries,
        progress=[{"groupOffset": 5}, {"queueId": 1, "groupOffset": 6}],
    )  # fmt: skip

    assert states(found) == {
        "m0": standing.EARLIER, "m1": standing.EARLIER, "m2": standing.ACKNOWLEDGED,
        "m3": standing.PASSED_BY, "m4": standing.ACKNOWLEDGED, "m5": standing.EARLIER,
    }  # fmt: skip


def test_without_trace_offsets_decide(spark: Any) -> None:
    """Below the progress is acknowledged, unless a copy waits or has died."""
    messages = messages_frame(spark, [message(n) for n in range(6)])

    found = stand(
        spark,
        messages,
        dead=[{"msgId": "m1"}],
        retries=[
            {"msgId": "m2", "tries": 1, "parked": True},
            {"msgId": "m3", "tries": 1, "parked": True},
            {"msgId": "m3", "tries": 1, "queueOffset": 0},
        ],
        progress=[{"groupOffset": 4}, {"topic": "%RETRY%billing", "groupOffset": 1}],
    )

    assert states(found) == {
        "m0": standing.ACKNOWLEDGED, "m1": standing.DEAD, "m2": standing.RETRYING,
        "m3": standing.ACKNOWLEDGED, "m4": standing.WAITING, "m5": standing.WAITING,
    }  # fmt: skip
    assert {row.basis for row in found.collect()} == {"offset"}


def test_what_cannot_be_seen_is_not_called_a_loss(spark: Any) -> None:
    """Without progress, retries and dead letters a failure says nothing about the end."""
    messages = messages_frame(spark, [message(n) for n in range(3)])
    tries = [("billing", "m0", True), ("billing", "m1", False)]

    found = stand(spark, messages, tries=tries, copies_known=False)

    assert states(found) == {
        "m0": standing.ACKNOWLEDGED, "m1": standing.UNKNOWN, "m2": standing.UNKNOWN,
    }  # fmt: skip


def test_the_ledger_of_a_topic_accounts_for_all_that_was_sent(spark: Any) -> None:
    """Nine were sent: three are stored, one of them twice, and one is lost."""
    half, delay = {"messageType": 1}, {"messageType": 3}
    pubs = pubs_frame(
        spark,
        [
            {"msgId": "m0"}, {"msgId": "m1"}, {"msgId": "m2"},
            {"msgId": "gone"},
            {"msgId": "old", "sentMs": NOON - 9 * MINUTE},
            {"msgId": "later", **delay},
            {"msgId": "recalled", **delay, "recalled": True},
            {"msgId": "undecided", **half},
            {"msgId": "undone", **half, "state": "ROLLBACK_MESSAGE"},
            {"msgId": "edge", "sentMs": NOON + 8 * MINUTE},
            {"msgId": "before", "sentMs": NOON - 11 * MINUTE},
            {"msgId": "elsewhere", "topic": "others"},
        ],
    )  # fmt: skip
    messages = messages_frame(
        spark,
        [
            message(0), message(1), message(1, queueOffset=7, storedMs=NOON + 9000), message(2),
            message(2, queueOffset=8, origin="resent"),
            message(3),
            message(4, msgId="edge", inside=False),
        ],
    )  # fmt: skip
    sent = ledger.sent(
        pubs, messages, topics=["orders"], since_ms=NOON - 10 * MINUTE, until_ms=NOON + 9 * MINUTE,
        kept_since_ms=NOON - MINUTE,
    )  # fmt: skip
    singles = standing.distinct(messages)

    found = table(ledger.TOPICS, ledger.topic_ledger(singles, sent))
    ledger.check_topics(found)

    assert found.rows == [
        {"topic": "orders", "sent": 9, "stored": 6, "messages": 4, "untraced": 1, "again": 1,
         "delayed": 1, "half": 1, "rolledBack": 1, "calledBack": 1, "expired": 1, "lost": 1,
         "doubled": 1}
    ]  # fmt: skip
    differences = ledger.differences(singles, sent, stand(spark, messages))
    listed = table(ledger.DIFFERENCES, ledger.listed(differences))
    assert shown(listed, "what", "msgId", "explained", "queueOffset", "copies") == [
        ("called back", "recalled", True, None, 0),
        ("delayed", "later", True, None, 0),
        ("doubled", "m1", False, 1, 2),
        ("expired", "old", True, None, 0),
        ("half", "undecided", True, None, 0),
        ("lost", "gone", False, None, 0),
        ("resent", "m2", True, 2, 2),
        ("rolled back", "undone", True, None, 0),
    ]


def test_a_topic_of_which_nothing_is_left_is_in_the_ledger(spark: Any) -> None:
    """All that was sent to it is lost: there is no stored row to begin with."""
    messages = messages_frame(spark, [])
    pubs = pubs_frame(spark, [{"msgId": "gone"}])
    sent = ledger.sent(
        pubs, messages, topics=["orders"], since_ms=None, until_ms=None, kept_since_ms=None
    )

    found = table(ledger.TOPICS, ledger.topic_ledger(standing.distinct(messages), sent))
    ledger.check_topics(found)

    assert [("orders", 1, 0, 1)] == shown(found, "topic", "sent", "stored", "lost")


def test_more_differences_than_are_listed_are_counted(spark: Any) -> None:
    """The list is cut, the count is not."""
    messages = messages_frame(spark, [message(0)])
    pubs = pubs_frame(spark, [{"msgId": f"gone{n}"} for n in range(5)])
    sent = ledger.sent(
        pubs, messages, topics=["orders"], since_ms=None, until_ms=None, kept_since_ms=None
    )
    found = ledger.differences(standing.distinct(messages), sent, stand(spark, messages))

    kinds = table(ledger.KINDS, ledger.kinds(found, limit=2))

    assert shown(kinds, "what", "messages", "listed") == [("lost", 5, 2)]
    assert ledger.listed(found, limit=2).count() == 2


def test_traffic_is_counted_in_steps(spark: Any) -> None:
    """Three messages in the first minute and one in the second; one was acknowledged."""
    messages = messages_frame(spark, [message(n) for n in (0, 1, 59, 60)])
    done = stand(spark, messages, tries=[("billing", "m0", True)], progress=[{"groupOffset": 1}])
    flows = traffic.flows(messages, done.where("state = 'acknowledged'")).cache()

    by_minute = table(traffic.TRAFFIC, traffic.traffic(flows, MINUTE))
    totals = table(traffic.TOTALS, traffic.totals(flows))

    noon = datetime.fromtimestamp(NOON / 1000, UTC)
    assert [(row[0], row[1].minute - noon.minute, *row[2:])
            for row in shown(by_minute, "direction", "startTime", "messages", "bytes",
                             "perSecond")] == [
        ("in", 0, 3, 300, 0.05), ("in", 1, 1, 100, 0.017), ("out", 0, 1, 100, 0.017),
    ]  # fmt: skip
    assert shown(totals, "group", "direction", "basis", "messages", "perSecond") == [
        (None, "in", "store", 4, 0.067), ("billing", "out", "trace", 1, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "span_ms, step_ms",
    [(0, 1_000), (200_000, 1_000), (300_000, 10_000), (7_200_000, 60_000),
     (86_400_000, 600_000), (10 * 365 * 86_400_000, 16 * 86_400_000)],
)  # fmt: skip
def test_a_line_has_few_enough_points(span_ms: int, step_ms: int) -> None:
    """Steps grow with the time that is shown."""
    assert step_ms == step_for(NOON, NOON + span_ms)
    assert span_ms // step_ms < POINTS_MAX


def test_percentiles_are_values_that_occurred(spark: Any) -> None:
    """Of 1 to 1000 ms half are up to 500, all but one up to 999."""
    messages = messages_frame(
        spark, [message(n, bornMs=NOON, storedMs=NOON + n) for n in range(1, 1001)]
    )
    done = stand(spark, messages, tries=[("billing", "m1", True), ("billing", "m2", None)],
                 progress=[{"groupOffset": 2}])  # fmt: skip

    found = table(latency.LATENCY, latency.latency(messages, done))

    assert shown(found, "group", "span", "messages", "p50", "p90", "p99", "p999", "maxMs") == [
        (None, "born to stored", 1000, 500, 900, 990, 999, 1000),
        ("billing", "born to acknowledged", 1, 1007, 1007, 1007, 1007, 1007),
        ("billing", "handling", 1, 7, 7, 7, 7, 7),
        ("billing", "stored to handed out", 2, 999, 999, 999, 999, 999),
    ]


def test_duplicates_by_id_by_key_and_by_acknowledgement(spark: Any) -> None:
    """A stored twin, a second order that looks the same, and a message done twice."""
    messages = messages_frame(
        spark,
        [
            message(0), message(0, queueOffset=9),
            message(1, keys="k1 all", crc=5), message(2, keys="k1", crc=5),
            message(3, keys="k1", crc=6),
        ],
    )  # fmt: skip
    done = stand(spark, messages, tries=[("billing", "m3", True), ("billing", "m3", True)])
    found = duplicates.repeats(messages, done).cache()

    totals = table(duplicates.TOTALS, duplicates.totals(found))
    listed = table(duplicates.LISTED, duplicates.listed(found))

    assert shown(totals, "group", "kind", "values", "extra") == [
        (None, "same id", 1, 1), (None, "same key and body", 1, 1),
        ("billing", "acknowledged again", 1, 1),
    ]  # fmt: skip
    assert shown(listed, "value", "copies", "firstPlace", "lastPlace") == [
        ("m0", 2, "b:0:0", "b:0:9"), ("k1", 2, "b:0:1", "b:0:2"), ("m3", 2, "b:0:3", "b:0:3"),
    ]  # fmt: skip


def test_dead_letters_are_sorted_by_cause(spark: Any) -> None:
    """By fingerprint, else by reason; the newest letter is the example."""
    dead = dead_frame(
        spark,
        [
            {"msgId": "a", "deadId": "1", "fingerprint": "f", "error": "ValueError", "text": "x"},
            {"msgId": "b", "deadId": "2", "fingerprint": "f", "error": "ValueError", "text": "y",
             "diedMs": NOON + 1, "topic": "others"},
            {"msgId": "c", "deadId": "3", "reason": "closed"},
            {"msgId": "d", "deadId": "4"},
        ],
    )  # fmt: skip

    found = table(causes.CAUSES, causes.causes(dead))

    assert shown(found, "cause", "error", "text", "letters", "topics", "exampleId") == [
        ("(no cause was noted)", None, None, 1, "orders", "4"),
        ("closed", None, None, 1, "orders", "3"),
        ("f", "ValueError", "y", 2, "orders others", "2"),
    ]


def test_hot_keys_and_uneven_queues(spark: Any) -> None:
    """Half of the messages carry one key; one of the three queues is empty."""
    rows = [message(n, keys="hot x" if n < 2 else f"k{n}", queueId=n // 3) for n in range(4)]
    messages = messages_frame(spark, rows)
    places = [{"topic": "orders", "brokerName": "b", "queueId": n} for n in range(3)]
    known = frame(spark, skew.QUEUES_SCHEMA, places)

    keys = table(skew.KEYS, skew.hot_keys(messages, limit=2))
    queues = table(skew.QUEUES, skew.queues(messages, known))
    load = table(skew.LOAD, skew.queue_load(messages, MINUTE))

    assert shown(keys, "key", "messages", "share", "queues") == [
        ("hot", 2, 0.5, 1),
        ("x", 2, 0.5, 1),
    ]
    assert shown(queues, "queueId", "messages", "share", "ratio") == [
        (0, 3, 0.75, 2.25), (1, 1, 0.25, 0.75), (2, 0, 0.0, 0.0),
    ]  # fmt: skip
    assert shown(load, "queueId", "messages") == [(0, 3), (1, 1)]


def test_lag_is_summed_over_queues_at_each_look(spark: Any) -> None:
    """What a group has not read, and how old the last thing is that it did read."""
    history = progress_frame(
        spark,
        [
            {"brokerOffset": 10, "groupOffset": 4, "lastMs": NOON - 5000},
            {"queueId": 1, "brokerOffset": 7, "groupOffset": 7, "lastMs": NOON - 90_000},
            {"atMs": NOON + MINUTE, "brokerOffset": 10, "groupOffset": 10, "lastMs": NOON},
            {"atMs": NOON + MINUTE, "queueId": 1, "brokerOffset": None, "groupOffset": 7},
        ],
    )

    found = table(lag.LAG, lag.lag(history))

    assert shown(found, "group", "queues", "lag", "maxLag", "behindSeconds") == [
        ("billing", 2, 6, 6, 5.0), ("billing", 1, 0, 0, None),
    ]  # fmt: skip
