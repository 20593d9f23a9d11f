"""Is anything missing? The no-loss ledger."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame

from gantrymq.model import SCHEDULE_TOPIC
from gantrymq.pipelines.marts import ledger
from gantrymq.pipelines.marts import standing as st
from gantrymq.pipelines.marts.mart import check_agree
from gantrymq.pipelines.report.charts import Bar, BarPart
from gantrymq.pipelines.report.number_text import number
from gantrymq.pipelines.report.pictures import Picture, draw_bars
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.request import STORE
from gantrymq.pipelines.report.section import Section
from gantrymq.pipelines.report.work import ReportWork
from gantrymq.pipelines.staging import group_progress, spans
from gantrymq.pipelines.staging.coverage import coverage

STATES: Final = (
    ("acknowledged", "acknowledged", "good"),
    ("dead", "dead", "dead"),
    ("retrying", "retrying", "warn"),
    ("inHand", "in hand", "c5"),
    ("waiting", "waiting", "wait"),
    ("unwanted", "unwanted", "idle"),
    ("earlier", "before its begin", "idle"),
    ("unknown", "unknown", "c7"),
    ("passedBy", "passed by", "bad"),
    ("unfinished", "unfinished", "bad"),
    ("dropped", "dropped", "bad"),
    ("untraced", "trace missing", "warn"),
)
"""Columns of the ledger, as the picture names and colours them."""


def make_tables(work: ReportWork) -> None:
    """Where each message stands, counted by topic and group, and every difference."""
    facts, period = work.facts, work.request.period
    found, retries, dead = work.trace, work.retries, work.dead
    tries = work.of_groups(spans.deliveries(found))
    singles = work.keep(st.distinct(work.stored))
    now = group_progress.progress(work.spark, _with_broker(work, facts.progress))
    subscriptions = work.spark.createDataFrame(list(facts.subscriptions), st.SUBSCRIPTIONS)
    readers = st.readers(singles, tries, dead, retries, now)
    stands = work.keep(
        st.standing(
            singles,
            readers,
            tries,
            dead,
            retries,
            now,
            subscriptions,
            copies_known=_knows_copies(work),
        )
    )
    work.standing = _excused(work, stands, found)
    sent = work.keep(
        ledger.sent(
            spans.pubs(found),
            work.stored,
            topics=facts.topics,
            since_ms=period.since_ms,
            until_ms=period.until_ms,
            kept_since_ms=facts.kept_since_ms,
        )
    )
    topics = work.add(ledger.TOPICS, ledger.topic_ledger(singles, sent))
    ledger.check_topics(topics)
    groups = work.add(ledger.GROUPS, ledger.group_ledger(work.standing))
    ledger.check_groups(groups, topics)
    differences = work.keep(ledger.differences(singles, sent, work.standing))
    kinds = work.add(ledger.KINDS, ledger.kinds(differences))
    listed = work.add(ledger.DIFFERENCES, ledger.listed(differences))
    check_agree(
        listed.mart,
        "listed differences, and their count by kind",
        {"listed": len(listed.rows)},
        {"listed": kinds.total("listed")},
    )


def _excused(work: ReportWork, stands: DataFrame, found: DataFrame) -> DataFrame:
    """Mark unexplained messages as untraced where missing trace may be the reason."""
    needed = st.missing_records(stands)
    told_of = {group: count for group, count in work.consumptions.items() if group in needed}
    if not told_of:
        return stands
    every = coverage(found, told_of, work.facts.online, work.facts.at_ms)
    sure = work.keep(_excuse(work, stands, {each.group: each.sure_ms for each in every}))
    needed = st.missing_records(sure)
    whole = {
        each.group: each.whole_ms
        for each in every
        if each.missing and needed.get(each.group, 0) <= each.missing
    }
    excused = work.keep(_excuse(work, sure, whole)) if whole else sure
    untraced = st.untraced_groups(excused)
    work.report.gaps = [each for each in every if each.group in untraced]
    work.report.notes += [each.why(work.request.zone) for each in work.report.gaps]
    return excused


def _excuse(work: ReportWork, stands: DataFrame, since: Mapping[str, int | None]) -> DataFrame:
    return st.excuse(stands, work.spark.createDataFrame(list(since.items()), st.GAPS))


def _knows_copies(work: ReportWork) -> bool:
    """Whether delayed retries can be read: their system topic is rarely archived.

    In a store the topic exists from the first delayed message on.
    """
    return work.request.kind == STORE or SCHEDULE_TOPIC in work.facts.known


def _with_broker(work: ReportWork, rows: group_progress.Snapshot) -> group_progress.Snapshot:
    """Add the broker's name to the progress of a store: only its rows have it."""
    if work.request.kind != STORE:
        return rows
    names = work.stored.select("brokerName").limit(1).collect()
    return [{**row, "brokerName": names[0][0] if names else ""} for row in rows]


def draw_states(report: Report) -> Picture | None:
    """A bar a group: how many messages are in each state."""
    rows = report.table(ledger.GROUPS).rows
    found = [
        Bar(
            f"{row['topic']} → {row['group']}",
            tuple(BarPart(title, row[name], colour) for name, title, colour in STATES if row[name]),
            f"{number(row['acknowledged'])} of {number(row['messages'])} ({row['basis']})",
        )
        for row in sorted(rows, key=lambda row: -row["messages"])
    ]
    return draw_bars("ledger", "Where messages stand", "messages", ledger.GROUPS, found)


SECTION: Final = Section(
    name="ledger",
    title="Is anything missing?",
    empty="No messages, and nothing that was sent.",
    make=make_tables,
    drawings=(draw_states,),
    tables=(ledger.TOPICS, ledger.GROUPS, ledger.KINDS, ledger.DIFFERENCES),
    beside=(ledger.KINDS,),
    below=(ledger.DIFFERENCES, ledger.GROUPS, ledger.TOPICS),
)
