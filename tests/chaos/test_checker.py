"""The checker on histories made by hand: good ones pass, and each kind of fault is found."""

import pytest

from chaos.checker import Downtime, Verdict, check, downtime
from chaos.history import Name, Outcome, Send, format_send, parse_send, refusal_outcome


def send(number: int, outcome: Outcome = "ok", *, queue: int = 0, at: float | None = None) -> Send:
    """The n-th message of a writer; each takes half a second, one after the other."""
    began = float(number) if at is None else at
    return Send(Name("w", queue, number), began, began + 0.5, outcome)


def bodies(*numbers: int, queue: int = 0) -> list[str]:
    return [f"w/{queue}/{number}" for number in numbers]


def troubles(verdict: Verdict) -> dict[str, list[str]]:
    """Everything that is not as it should be."""
    names = (
        "lost", "lost_later", "lost_with_master", "duplicated", "out_of_order",
        "phantom", "unexpected", "disagreeing",
    )  # fmt: skip
    return {name: getattr(verdict, name) for name in names if getattr(verdict, name)}


def test_all_that_was_acknowledged_is_there() -> None:
    """A history without trouble has none, and its messages are counted."""
    sends = [send(0), send(1, "stored"), send(2, "failed"), send(3, "unknown"), send(4, "unknown")]
    found = {0: bodies(0, 1, 3), 1: []}

    verdict = check(sends, found, found)

    assert {} == troubles(verdict)
    assert (5, 2, 1) == (verdict.sent, verdict.acknowledged, verdict.failed)
    assert (2, 1) == (verdict.unknown, verdict.unknown_stored)


@pytest.mark.parametrize("outcome", ["ok", "stored"])
def test_an_acknowledged_message_is_missing(outcome: Outcome) -> None:
    """It is lost, whether it was answered with SEND_OK or as stored on the master only."""
    verdict = check([send(0), send(1, outcome), send(2)], {0: bodies(0, 2)})

    assert {"lost": bodies(1)} == troubles(verdict)


def test_a_message_is_lost_after_the_fault() -> None:
    """Those that were begun when the fault was over are told apart."""
    verdict = check([send(0), send(1), send(2)], {0: []}, healed=1.5)

    assert bodies(0, 1, 2) == verdict.lost
    assert bodies(2) == verdict.lost_later


def test_a_message_is_there_twice() -> None:
    """Each further copy counts, and is no disorder."""
    verdict = check([send(0), send(1)], {0: bodies(0, 1, 0, 0)})

    assert {"duplicated": bodies(0, 0)} == troubles(verdict)


def test_a_later_message_comes_first() -> None:
    """The one that was acknowledged before the other began is out of order."""
    verdict = check([send(0), send(1), send(2)], {0: bodies(1, 0, 2)})

    assert {"out_of_order": bodies(0)} == troubles(verdict)


def test_messages_under_way_at_once_have_no_order() -> None:
    """Neither had ended when the other began."""
    sends = [send(0, at=1.0), send(1, at=1.2)]

    assert {} == troubles(check(sends, {0: bodies(1, 0)}))


def test_an_unknown_message_may_come_late() -> None:
    """Nobody said when it would be stored; but what was acknowledged before it began is first."""
    sends = [send(0), send(1, "unknown"), send(2)]

    assert {} == troubles(check(sends, {0: bodies(0, 2, 1)}))
    assert {"out_of_order": bodies(0)} == troubles(check(sends, {0: bodies(1, 0, 2)}))


def test_a_message_was_never_sent() -> None:
    """A name that nobody used, a body that is no name, and a message in a queue of others."""
    read = {0: [*bodies(0, 7), "garbage"], 1: bodies(1)}

    verdict = check([send(0), send(1)], read)

    assert [*bodies(7), "garbage", *bodies(1)] == verdict.phantom


def test_a_refused_message_is_there() -> None:
    """Its sender was told that it is not stored."""
    assert {"unexpected": bodies(1)} == troubles(
        check([send(0), send(1, "failed")], {0: bodies(0, 1)})
    )


def test_the_copy_lacks_a_message() -> None:
    """SEND_OK counts; what was answered as stored on the master only does not."""
    sends = [send(0), send(1, "stored"), send(2)]

    verdict = check(sends, {0: bodies(0, 1, 2)}, {0: bodies(0)})

    assert {"lost_with_master": bodies(2)} == troubles(verdict)


def test_the_copy_differs() -> None:
    """At one offset there is one message, on all members."""
    sends = [send(0, at=1.0), send(1, at=1.2), send(2)]

    verdict = check(sends, {0: bodies(0, 1, 2)}, {0: bodies(1, 0)})

    assert ["0:0", "0:1"] == verdict.disagreeing


def test_downtime_is_that_of_the_worst_queue() -> None:
    """From acknowledgement to acknowledgement; short pauses do not add up."""
    steady = [send(number, queue=0, at=number * 0.4) for number in range(20)]
    ends: list[tuple[int, Outcome, float]] = [
        (0, "ok", 0.0),
        (1, "failed", 1.0),
        (2, "ok", 3.0),
        (3, "ok", 3.1),
        (4, "ok", 5.0),
    ]
    gap = [send(number, outcome, queue=1, at=at) for number, outcome, at in ends]

    found = downtime([*steady, *gap])

    assert 3.0 == found.longest
    assert 4.9 == pytest.approx(found.total)
    assert Downtime() == downtime([])


def test_a_queue_that_never_answers_is_down_all_the_time() -> None:
    """Also without any acknowledgement there is a first and a last moment."""
    assert Downtime(4.5, 4.5) == downtime([send(0, "failed"), send(4, "unknown")])


def test_what_ends_a_trial_is_no_downtime() -> None:
    """Sends that end after it are judged, but not as a pause."""
    sends = [send(0), send(1), send(9, "unknown")]

    assert 1.0 == check(sends, {0: bodies(0, 1)}, until=5.0).downtime.longest


def test_a_log_line_is_read_as_it_was_written() -> None:
    """Statuses of brokers become outcomes; an unknown status is an unknown outcome."""
    name = Name("java", 3, 12)
    expected = {
        "SEND_OK": "ok",
        "SLAVE_NOT_AVAILABLE": "stored",
        "FLUSH_DISK_TIMEOUT": "stored",
        "failed": "failed",
        "unknown": "unknown",
        "SOMETHING_NEW": "unknown",
    }

    for status, outcome in expected.items():
        found = parse_send(format_send(name, 1.0, 2.0, status, "why"))
        assert Send(name, 1.0, 2.0, outcome, "why") == found  # type: ignore[arg-type]


def test_only_refusals_before_a_write_are_certain() -> None:
    """SYSTEM_ERROR may come after it."""
    assert ("failed", "unknown") == (refusal_outcome(14), refusal_outcome(1))
