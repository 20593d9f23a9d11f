"""Pure parts of the message pages: times of a form, cursors of a search, places of a picture."""

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.client.admin.messages.paged_search import QueueSpan, SearchPlace
from gantrymq.console.api.cursors import cursor_of, place_of
from gantrymq.console.api.message import History, HistoryEvent, HistoryGroup
from gantrymq.console.errors import BadInput
from gantrymq.console.pages.history_picture import after, picture_of
from gantrymq.console.pages.search_fields import kept, letters_query, times_of

NOW_MS = 1_800_000_000_000


def test_times_are_relative_or_in_the_zone_of_the_reader() -> None:
    """A reader two hours before UTC means two hours less; an end has its whole minute or second."""
    assert times_of({"since": "1h"}, NOW_MS) == {"fromMs": NOW_MS - 3_600_000}
    assert times_of({"since": "", "from": "2026-01-01T00:00"}, NOW_MS) == {}
    fields = {"since": "between", "from": "1970-01-01T02:00", "until": "1970-01-01T02:01"}
    assert times_of(fields | {"zone": "120"}, NOW_MS) == {"fromMs": 0, "untilMs": 119_999}
    exact = {"since": "between", "until": "1970-01-01T00:00:05", "zone": "x"}
    assert times_of(exact, NOW_MS) == {"untilMs": 5_999}


@pytest.mark.parametrize("text", ["nonsense", "99999-01-01", "0001-01-01T00:00"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    """A sentence says how to write one; the first day there is has none before it."""
    with pytest.raises(BadInput, match="2026-11-18T09:30"):
        times_of({"since": "between", "from": text, "zone": "1440"}, NOW_MS)


def test_addresses_keep_the_fields_of_the_form_and_nothing_else() -> None:
    """What somebody adds to an address does not come along."""
    assert kept({"topic": "a&b", "evil": "x", "cursor": "c"}, cursor="d") == "topic=a%26b&cursor=d"
    assert letters_query({"key": "k", "after": "x"}) == "key=k"


spans = st.builds(
    lambda broker, queue, low, size, at: QueueSpan(
        broker, queue, low, low + size, low + min(at, size)
    ),
    st.text(max_size=20), st.integers(0, 1000), st.integers(0, 10**12), st.integers(0, 10**9),
    st.integers(0, 10**9),
)  # fmt: skip


@given(
    st.text(max_size=20),
    st.booleans(),
    st.booleans(),
    st.lists(spans, max_size=20, unique_by=lambda span: (span.broker, span.queue_id)),
)
def test_a_cursor_is_the_place_it_was_made_of(
    topic: str, newest: bool, follows: bool, places: list[QueueSpan]
) -> None:
    """For any queues and offsets."""
    place = SearchPlace(topic, newest, 0, 5, follows, places)

    assert place_of(cursor_of(place), topic) == place


def test_a_cursor_names_each_queue_once() -> None:
    """One that somebody wrote could ask a broker for the same queue very often."""
    twice = SearchPlace("t", True, 0, 5, False, [QueueSpan("a", 0, 0, 9, 9)] * 2)
    with pytest.raises(BadInput, match="another search"):
        place_of(cursor_of(twice), "t")


@given(st.text(max_size=60))
def test_no_text_breaks_a_cursor(text: str) -> None:
    """Whatever it says, it is refused."""
    with pytest.raises(BadInput):
        place_of(text, "t")


@pytest.mark.parametrize(
    "data",
    [
        b'["t",true,0,5,false,[["b",0,5,3,4]]]',
        b'["t",true,0,5,false,[["b",0,0,3,9]]]',
        b'["t",true,0,5,false,[["b",-1,0,3,1]]]',
        b'["other",true,0,5,false,[]]',
        b"[" * 1000,
    ],
)
def test_a_cursor_that_somebody_made_up_is_refused(data: bytes) -> None:
    """Offsets out of order, of another topic, or no place at all."""
    with pytest.raises(BadInput):
        place_of(base64.urlsafe_b64encode(zlib.compress(data)).decode(), "t")


def test_a_cursor_does_not_unpack_to_more_than_it_may() -> None:
    """A few bytes of zeros are many when they are unpacked."""
    with pytest.raises(BadInput):
        place_of(base64.urlsafe_b64encode(zlib.compress(b" " * 50_000_000)).decode(), "t")


def event(at_ms: int, what: str, group: str = "") -> HistoryEvent:
    return HistoryEvent(
        at_ms=at_ms, what=what, text="", place="", group=group, due_ms=None, source="store"
    )


def test_a_picture_has_a_lane_for_each_group_and_a_dot_for_each_event() -> None:
    """In the order of time; a group without events has its lane, too."""
    history = History(
        msg_id="m", topic="t", state="stored", text="", due_ms=None, unknown=[],
        events=[event(1000, "stored"), event(1500, "dead", "g"), event(61_000, "new", "late")],
        groups=[HistoryGroup(group="g", state="dead", text="", due_ms=None),
                HistoryGroup(group="quiet", state="acked", text="", due_ms=None)],
    )  # fmt: skip

    found = picture_of(history)

    assert [lane.group for lane in found.lanes] == ["", "g", "quiet", "late"]
    assert [lane.state for lane in found.lanes] == ["", "dead", "acked", ""]
    assert [dot.look for dot in found.dots] == ["ok", "error", "note"]
    assert [dot.after for dot in found.dots] == ["+0 ms", "+500 ms", "+1.0 min"]
    xs, ys = [dot.x for dot in found.dots], [dot.y for dot in found.dots]
    assert xs == sorted(set(xs))
    assert max(xs) < found.width
    assert max(ys) < found.height


@pytest.mark.parametrize(
    "ms, said",
    [(5, "+5 ms"), (1500, "+1.5 s"), (90_000, "+1.5 min"), (7_200_000, "+2.0 h"),
     (172_800_000, "+2.0 d"), (-5, "−+5 ms")],
)  # fmt: skip
def test_durations_are_for_people(ms: int, said: str) -> None:
    """Clocks differ, so an event may seem to be before the first."""
    assert after(ms) == said.replace("−+", "−")
