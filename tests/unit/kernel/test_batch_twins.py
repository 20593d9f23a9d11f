"""Batches: the compiled kernel lays them out and cuts them as the readable one does."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from twins import I32, outcome, properties, pure, twin

from gantrymq import Message
from gantrymq.kernel.batches import BatchLimits
from gantrymq.protocol import batch

STEM = "7F00000112340000ABCD00C0FFEE"
TAIL = b"CLUSTER\x01c\x02"
WIDE = BatchLimits(100, 1 << 20, 4095)

words = st.text("ab é字", min_size=1, max_size=6).filter(lambda text: not text.isspace())
odd = st.sampled_from(
    [{"delay_level": 2}, {"delay": 5}, {"sharding_key": "k"}, {"wait_store_ok": False}, {}]
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """A message, usually a plain one."""
    fields: dict[str, Any] = draw(odd) if draw(st.integers(0, 9)) == 0 else {}
    if draw(st.booleans()):
        fields["properties"] = {"a": draw(words)}
    if draw(st.booleans()):
        fields["tags"] = draw(st.sampled_from(["new", "pâid", "x" * 40_000]))
    keys = draw(st.lists(st.text("ab字", min_size=1, max_size=4), max_size=3))
    topic = draw(st.sampled_from(["orders"] * 5 + ["others"]))
    body = draw(st.binary(min_size=1, max_size=200))
    return Message(topic, body, keys=keys, flag=draw(st.integers(0, 2**31 - 1)), **fields)


def own(message: Any, msg_id: str) -> tuple[str, str] | None:
    """Properties of its own; some are refused, some bring an id."""
    value = message.properties["a"]
    if value.startswith("b"):
        return None
    return f"UNIQ_KEY\x01{value}\x02", value


@given(
    st.lists(messages(), min_size=1, max_size=8),
    st.sampled_from([STEM, "", "é", "x" * 61]),
    st.integers(0, 70_000),
    st.sampled_from([WIDE, BatchLimits(3, 1 << 20, 100), BatchLimits(100, 400, 4095),
                     BatchLimits(0, 0, 0)]),
)  # fmt: skip
def test_messages_are_laid_out_alike(
    given_messages: list[Message], stem: str, counter: int, limits: BatchLimits
) -> None:
    """
    Both kernels make the same batch of any messages, with the same ids, and end it at the same one.
    """
    arguments = given_messages, len(given_messages) // 2, stem, counter, limits, own
    assert outcome(twin("encode_batch"), *arguments) == outcome(pure("encode_batch"), *arguments)


def test_a_batch_can_be_cut_again() -> None:
    """
    What is laid out is cut into the same messages, with the properties that are stored.
    """
    given_messages = [Message("orders", b"%d" % number, tags="new") for number in range(300)]
    made = twin("encode_batch")(given_messages, 0, STEM, 65_400, BatchLimits(200, 1 << 20, 10), own)
    assert made.messages == 200
    items = twin("batch_items")(made.body, TAIL, 1000)
    assert [item[1] for item in items] == [message.body for message in given_messages[:200]]
    assert items[150][2] == f"UNIQ_KEY\x01{STEM}000E\x02TAGS\x01new\x02".encode() + TAIL
    assert made.ids.split(",")[150] == f"{STEM}000E"


items = st.tuples(I32, st.binary(max_size=60), properties()).map(lambda item: batch.Item(*item))


@given(st.lists(items, max_size=5), st.integers(0, 4), st.binary(max_size=3), st.integers(0, 90))
@example([batch.Item(0, b"", b"POP_CK\x01a")], 9, b"", 0)
@example([batch.Item(0, b"", b"XPOP_CK\x01a\x02b\x01c")], 9, b"", 0)
def test_bodies_are_cut_alike(
    given_items: list[batch.Item], count_max: int, more: bytes, lost: int
) -> None:
    """
    Both kernels cut any batch alike, and refuse alike what does not add up.
    """
    body = batch.encode(given_items) + more
    for data in (body, body[: max(0, len(body) - lost)]):
        arguments = data, TAIL, count_max
        assert outcome(twin("batch_items"), *arguments) == outcome(pure("batch_items"), *arguments)


@given(st.binary(max_size=80))
def test_any_bytes_are_cut_alike(data: bytes) -> None:
    """
    Both kernels do the same with bytes that nobody made.
    """
    arguments = data, TAIL, 3
    assert outcome(twin("batch_items"), *arguments) == outcome(pure("batch_items"), *arguments)


@given(st.lists(items.map(tuple), max_size=6))
def test_items_are_measured_alike(given_items: list[tuple[int, bytes, bytes]]) -> None:
    """
    Both kernels find the same sizes in a batch, and the same zero bytes.
    """
    found = twin("measure_items")(given_items)
    assert found == pure("measure_items")(given_items)
    assert found.has_zero == any(b"\0" in item[2] for item in given_items)
