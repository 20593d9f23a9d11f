"""A report in a few numbers and one sentence. Pure."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from gantrymq.base.plurals import are, counted
from gantrymq.pipelines.marts import causes, duplicates, latency, ledger
from gantrymq.pipelines.report import number_text
from gantrymq.pipelines.report.report import Report


@dataclass(frozen=True, slots=True)
class Figure:
    """One number."""

    name: str
    title: str
    value: float | None
    unit: str
    text: str


class Verdict(NamedTuple):
    """The verdict of a report."""

    fine: bool | None
    """None: not known, because trace is missing."""
    text: str
    basis: str


def figures(report: Report) -> list[Figure]:
    """The numbers at the head of the page."""
    topics, groups = report.table(ledger.TOPICS), report.table(ledger.GROUPS)
    sent = topics.total("sent") if report.traced else None
    extra = sum(
        row["extra"]
        for row in report.table(duplicates.TOTALS).rows
        if row["kind"] == duplicates.BY_ID
    )
    slowest = [
        row["p99"]
        for row in report.table(latency.LATENCY).rows
        if row["span"] == latency.BORN_TO_ACKED
    ]
    found: list[tuple[str, str, int | None, str]] = [
        ("sent", "sent, by trace", sent, "messages"),
        ("stored", "stored", topics.total("stored"), "messages"),
        ("acknowledged", "acknowledged, all groups", groups.total("acknowledged"), "messages"),
        (
            "waiting",
            "waiting or retrying",
            groups.total("waiting") + groups.total("retrying") + groups.total("inHand"),
            "messages",
        ),
        ("dead", "dead letters", report.table(causes.CAUSES).total("letters"), "messages"),
        ("doubled", "stored again, same id", extra, "messages"),
        ("unexplained", "unexplained", report.unexplained, "messages"),
        ("p99", "p99, born to acknowledged", max(slowest, default=None), "ms"),
    ]
    if report.untraced:
        found.append(("untraced", "not known, trace missing", report.untraced, "messages"))
    return [
        Figure(name, title, value, unit, _text(value, unit)) for name, title, value, unit in found
    ]


def verdict(report: Report) -> Verdict:
    """Whether all is well, a sentence that says so, and the evidence."""
    count = report.unexplained
    stored = report.table(ledger.TOPICS).total("messages")
    groups = report.table(ledger.GROUPS).rows
    by_offset = sum(row["basis"] != "trace" for row in groups)
    basis = "Senders and consumers were followed by trace."
    if not report.traced:
        basis = "There is no trace: deliveries are told by the offsets that groups committed."
    elif by_offset:
        one = by_offset == 1
        basis = (
            f"{by_offset} of {counted(len(groups), 'group')} {'does' if one else 'do'} not trace "
            f"and {'is told by its' if one else 'are told by their'} offsets."
        )
    if count:
        kinds: dict[str, int] = {}
        for row in report.table(ledger.KINDS).rows:
            if row["explained"] is False:
                kinds[row["what"]] = kinds.get(row["what"], 0) + row["messages"]
        listed = ", ".join(f"{number_text.number(number)} {what}" for what, number in kinds.items())
        said = f"{_messages_are(count)} not accounted for: {listed}."
        return Verdict(False, said, basis)
    if report.untraced:
        return _not_known(report)
    if not stored:
        return Verdict(True, "There is nothing to account for.", basis)
    return Verdict(True, f"The books balance: {_messages_are(stored)} accounted for.", basis)


def _messages_are(count: int) -> str:
    return f"{counted(count, 'message', form=',')} {are(count)}"


def _not_known(report: Report) -> Verdict:
    count = report.untraced
    missing = sum(each.missing for each in report.gaps)
    much = "trace is"
    if missing:
        much = f"{counted(missing, 'trace record', form=',')} {are(missing)}"
    text = f"Not known for {counted(count, 'message', form=',')}: {much} missing."
    basis = "By their offsets the groups are past them, and nothing else is unexplained. "
    reasons = "; ".join(each.why(report.request.zone) for each in report.gaps)
    return Verdict(None, text, f"{basis}{reasons}.")


def summary(report: Report) -> dict[str, Any]:
    """The summary as JSON for scripts."""
    fine, first, second = verdict(report)
    return {
        "verdict": {"balanced": fine, "text": first, "basis": second},
        "unexplained": report.unexplained,
        "figures": {each.name: each.value for each in figures(report)},
        "topics": report.table(ledger.TOPICS).rows,
        "groups": report.table(ledger.GROUPS).rows,
        "differences": report.table(ledger.KINDS).rows,
        "notes": report.notes,
    }


def _text(value: int | None, unit: str) -> str:
    if value is None:
        return "–"
    return number_text.span(value) if unit == "ms" else number_text.number(value)
