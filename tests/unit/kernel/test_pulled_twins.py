"""Cutting what a pull brought: the compiled kernel gives what the readable one gives."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twins import hosts, pure, record_items, twin

from gantrymq.kernel.records import RecordItem
from gantrymq.protocol.record import RecordHead


def both(data: bytes, check: bool) -> Any:
    results = []
    for function in (twin("cut_records"), pure("cut_records")):
        found, bad = function(data, check)
        results.append((found, bad and (type(bad), str(bad))))
    assert results[0] == results[1]
    return results[0]


def body_of(items: list[RecordItem], host: bytes) -> bytes:
    data: bytes = pure("encode_records")(items, 0, 1_700_000_000_000, host)[0]
    return data


@given(st.lists(record_items(), max_size=4), hosts, st.booleans(), st.integers(0, 120))
def test_records_are_cut_alike_up_to_where_they_end(
    items: list[RecordItem], host: bytes, check: bool, missing: int
) -> None:
    """
    Both kernels cut the body of a pull into the same records, also when its end is missing.
    """
    data = body_of(items, host)
    found, bad = both(data, check)
    assert bad is None
    assert len(found) == len(items)
    assert all(type(head) is RecordHead for _, _, head in found)
    both(data[: max(0, len(data) - missing)], check)


@given(st.lists(record_items(), min_size=1, max_size=3), hosts, st.data())
def test_a_damaged_byte_is_judged_alike(
    items: list[RecordItem], host: bytes, data: st.DataObject
) -> None:
    """
    Both kernels give the same records and error for a body with one damaged byte.
    """
    damaged = bytearray(body_of(items, host))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    for check in (False, True):
        both(bytes(damaged), check)


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_judged_alike(data: bytes, check: bool) -> None:
    """
    Both kernels give the same result for any bytes.
    """
    both(data, check)


def test_only_a_check_sees_a_damaged_body() -> None:
    """
    A damaged message body is found only when the checksum is checked.
    """
    item: RecordItem = (b"t", 0, 0, 0, 0, 0, bytes(8), 0, 0, b"body" * 50, b"")
    damaged = bytearray(body_of([item, item], bytes(8)))
    damaged[-10] ^= 1

    assert both(bytes(damaged), False)[1] is None
    found, bad = both(bytes(damaged), True)
    assert len(found) == 1
    assert "damaged body" in bad[1]
