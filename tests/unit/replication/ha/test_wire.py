"""The bytes of the HA port."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.replication.ha.wire import REPORT, TRANSFER_HEAD, ReportReader, TransferReader

CUTS = st.lists(st.integers(1, 40), max_size=30)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """The bytes in pieces of these sizes, and the rest."""
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in (*pieces, data) if piece]


def test_layouts_are_rocketmqs() -> None:
    """A report is one big-endian long; a transfer's head is a long and an int."""
    assert REPORT.pack(258) == bytes([0, 0, 0, 0, 0, 0, 1, 2])
    assert TRANSFER_HEAD.pack(258, 3) == bytes([0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3])


@given(st.lists(st.integers(0, 1 << 60), max_size=20), CUTS)
def test_reports_survive_any_cut(offsets: list[int], sizes: list[int]) -> None:
    """Reports are found however TCP cuts them."""
    reader = ReportReader()
    data = b"".join(REPORT.pack(offset) for offset in offsets)
    assert [found for piece in cut(data, sizes) for found in reader.feed(piece)] == offsets


@given(st.lists(st.binary(max_size=60), max_size=12), CUTS)
def test_transfers_survive_any_cut(bodies: list[bytes], sizes: list[int]) -> None:
    """Every byte of the log comes out once, at its offset, and each heartbeat once."""
    reader, at, data = TransferReader(), 1000, b""
    for body in bodies:
        data += TRANSFER_HEAD.pack(at, len(body)) + body
        at += len(body)
    log, heartbeats = b"", 0
    for piece in cut(data, sizes):
        for offset, found in reader.feed(piece):
            assert offset == 1000 + len(log)
            log += found
            heartbeats += not found
    assert log == b"".join(bodies)
    assert heartbeats == bodies.count(b"")


@pytest.mark.parametrize("head", [(5, -1), (-1, 5), (0, 1 << 30)])
def test_garbage_is_no_transfer(head: tuple[int, int]) -> None:
    """A negative offset or size, or a size beyond reason, is refused with both numbers."""
    with pytest.raises(ProtocolError, match=rf"{head[1]} bytes at log offset {head[0]}"):
        TransferReader().feed(TRANSFER_HEAD.pack(*head))
