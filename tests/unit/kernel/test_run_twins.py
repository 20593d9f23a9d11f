"""Queue entries and message ids of many records at once: both kernels make the same."""

from hypothesis import given
from hypothesis import strategies as st
from twins import I32, I64, hosts, outcome, properties, pure, twin

from gantrymq.kernel.records import ENTRY, Walked

topics = st.sampled_from([b"orders", b"others"])
kinds = st.sampled_from([0, 0, 0, 8, 4, 12, 1, 0x10])
places = st.integers(0, (1 << 62) - 1)


@st.composite
def walked(draw: st.DrawFn) -> list[Walked]:
    """Records of a few queues, many of which follow each other."""
    records: list[Walked] = []
    for _ in range(draw(st.integers(0, 12))):
        queue_offset = draw(st.integers(0, 3))
        if records and draw(st.booleans()):
            queue_offset = records[-1][2] + 1
        records.append(
            (draw(topics), draw(st.integers(0, 1)), queue_offset, draw(places), draw(I32),
             draw(kinds), draw(I64), draw(places), draw(properties()))
        )  # fmt: skip
    return records


@given(walked())
def test_runs_are_found_alike(records: list[Walked]) -> None:
    """
    Both kernels cut records into the same runs, which have every record of a queue once.
    """
    runs = twin("entry_runs")(records)
    assert runs == pure("entry_runs")(records)
    found = [
        ((topic, queue_id, first + number), ENTRY.unpack_from(entries, number * ENTRY.size))
        for topic, queue_id, first, start, stop, entries in runs
        for number in range(stop - start)
    ]
    assert found == [
        (record[:3], (record[3], record[4], record[6]))
        for record in records
        if record[5] & 0xC in (0, 8)
    ]


@given(hosts, st.lists(st.one_of(places, I64), max_size=5))
def test_ids_are_written_alike(host: bytes, offsets: list[int]) -> None:
    """
    Both kernels write the same ids of a batch, for IPv4 and IPv6.
    """
    assert outcome(twin("offset_msg_ids"), host, offsets) == outcome(
        pure("offset_msg_ids"), host, offsets
    )
