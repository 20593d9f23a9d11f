"""Requests and answers of sends: the compiled kernel gives what the readable one gives."""

from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from twins import I32, hosts, outcome, pure, twin

from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.sending.send_request import PreparedMessage, SendFrames
from gantrymq.kernel import cut_commands
from gantrymq.model import Message, Queue
from gantrymq.protocol.command import encode

OPAQUES = st.integers(0, (1 << 31) - 1)
STEMS = st.text("0123456789ABCDEF", max_size=28)

messages = st.builds(
    Message,
    st.sampled_from(["orders", "t"]),
    st.binary(min_size=1, max_size=40),
    st.one_of(
        st.none(), st.sampled_from(["paid", 'a"b', "a\\b", "\x7f", "a\nb", "über", "a" * 600])
    ),
    st.lists(st.sampled_from(["k1", "ключ", 'k"', "k" * 300]), max_size=3),
    flag=I32,
)
queues = st.builds(
    Queue, st.sampled_from(["orders", "100%d"]), st.sampled_from(["broker-a", 'b"%b']),
    st.integers(0, 9),
)  # fmt: skip


def frames_of(queue: Queue) -> SendFrames:
    return SendFrames("g%s", queue, ProducerOptions())


@given(
    st.lists(st.tuples(messages, queues, OPAQUES), max_size=4), st.integers(0, 1 << 45), STEMS,
    st.integers(0, 1 << 17),
)  # fmt: skip
def test_plain_sends_are_encoded_alike(
    rows: list[tuple[Message, Queue, int]], born_ms: int, stem: str, counter: int
) -> None:
    """
    Both kernels make the same frames, ids and properties, and the frames are those of a template.
    """
    frames = [frames_of(queue) for _, queue, _ in rows]
    given = (
        [message for message, _, _ in rows], [each.parts for each in frames],
        [opaque for _, _, opaque in rows], born_ms, stem, counter,
    )  # fmt: skip
    found = twin("encode_sends")(*given)
    assert found == pure("encode_sends")(*given)
    for (message, _, opaque), builder, (frame, msg_id, text) in zip(
        rows, frames, found, strict=True
    ):
        prepared = PreparedMessage(
            message.topic, message.body, text, msg_id, born_ms, message.flag
        )  # fmt: skip
        assert frame == builder.frame(prepared, opaque)


class Call(SimpleNamespace):
    """A send that waits for its answer."""


def call(queue_id: int) -> Call:
    return Call(
        prepared=SimpleNamespace(msg_id="A1"),
        target=SimpleNamespace(queue=Queue("orders", "broker-a", queue_id)),
    )


HEADER = (
    '{"code":0,"extFields":{"MSG_REGION":"DefaultRegion","TRACE_ON":"true","msgId":"7F%d","queueId":"%d",'
    '"queueOffset":"%d","transactionId":"A%d"},"flag":1,"language":"%s","opaque":%d,'
    '"serializeTypeCurrentRPC":"JSON","version":%d}'
)


def framed(header: bytes, body: bytes = b"") -> bytes:
    size = len(header)
    return (4 + size + len(body)).to_bytes(4, "big") + size.to_bytes(4, "big") + header + body


def both(data: bytes, waiting: dict[int, Any]) -> Any:
    """What both kernels take, and what they leave."""
    ours, theirs = dict(waiting), dict(waiting)
    found = outcome(twin("cut_stored"), bytearray(data), ours, Call)
    assert found == outcome(pure("cut_stored"), bytearray(data), theirs, Call)
    assert ours.keys() == theirs.keys()
    return found


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """An answer, usually plain, and perhaps with one place that is not."""
    text = HEADER % (
        draw(st.integers(0, 99)), draw(st.integers(0, 3)), draw(st.integers(0, 1 << 62)),
        draw(st.integers(0, 9)), draw(st.sampled_from(["PYTHON", "JAVA", "C_1", ""])),
        draw(st.integers(0, 5)), draw(st.integers(0, 500)),
    )  # fmt: skip
    old, new = draw(
        st.sampled_from([
            ("", ""), ("", ""), ("", ""), ('"code":0', '"code":11'), ("TRACE_ON", "TRACE_OFF"),
            ("true", "tr\\u0075e"), ("true", "é"), ('"flag":1', '"flag":3'), ("msgId", "other"),
            ('"queueId"', '"queueOffset"'), ("DefaultRegion", ""), (',"trans', '"trans'),
            ('"MSG_REGION":"DefaultRegion",', ""), ("}", " }"), ('"msgId":"', '"msgId": "'),
            ("transactionId", "recallHandle"), ('"queueId":"', '"queueId":"-'),
            ('true"', 'true\x7f"'),
        ])
    )  # fmt: skip
    return framed(text.replace(old, new, 1).encode(), draw(st.sampled_from([b"", b"", b"", b"x"])))


@given(st.lists(answers(), max_size=5), st.binary(max_size=9), st.integers(0, 9))
def test_stored_answers_are_read_alike(frames: list[bytes], rest: bytes, cut: int) -> None:
    """
    Both kernels take the same answers, give them the same results, and stop at the same byte.
    """
    data = b"".join(frames) + rest
    both(data[: len(data) - cut], {opaque: call(opaque % 3) for opaque in range(5)})


@given(hosts, st.integers(0, 1 << 62), st.integers(0, 3), st.integers(0, 1 << 62), OPAQUES)
@example(b"\x7f\0\0\1\0\0\x2a\x9f", 0, 0, 0, 0)
def test_the_answer_of_our_broker_is_plain(
    host: bytes, position: int, queue_id: int, offset: int, opaque: int
) -> None:
    """
    The answer that our broker gives to an ordinary send is taken, with what its fields say.
    """
    if offset >= 10**18:
        return
    frame = pure("stored_answer")(0, 0, opaque, host, position, queue_id, offset, "A1")
    found, used = both(frame, {opaque: call(queue_id)})
    assert used == len(frame)
    (_, result), ext = found[0], cut_commands(bytearray(frame), 1 << 20, 1)[0][0].ext
    assert result == ("SEND_OK", "A1", ext["msgId"], Queue("orders", "broker-a", queue_id), offset,
                      "A1", None)  # fmt: skip


def test_answers_to_other_calls_are_left() -> None:
    """
    An answer to a call of another kind, to nobody, or of another queue goes the ordinary way.
    """
    frame = framed((HEADER % (1, 2, 3, 4, "JAVA", 5, 6)).encode())
    for waiting in ({}, {5: SimpleNamespace()}, {5: call(1)}, {5: Call(target=None)}):
        assert both(frame, waiting) == ([], 0)
    assert both(frame, {5: call(2)})[1] == len(frame)
    pull = encode(cut_commands(bytearray(frame), 1 << 20, 1)[0][0])
    assert both(pull, {5: call(2)})[1] == len(pull)
