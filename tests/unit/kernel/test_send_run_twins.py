"""Runs of plain sends: the compiled kernel stores and answers what the readable one does."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import I32, hosts, pure, twin

from gantrymq.access.credentials import Credentials
from gantrymq.access.signature import RequestSigner, SigningKey
from gantrymq.kernel import send_runs, signing
from gantrymq.kernel.send_runs import SendAccess, SendRules, is_plain_send
from gantrymq.model import TIMER_TOPIC, TopicConfig
from gantrymq.protocol.command import BINARY_CODEC, JSON_CODEC, Command, encode

TOPICS = {
    name: TopicConfig(topic_name=name, read_queue_nums=4, write_queue_nums=2)
    for name in ("orders", "others", TIMER_TOPIC, "a/b", "x" * 140)
}
TAIL = b"CLUSTER\x01c\x02"
BOUNDS = (200, 260, 400)
LIMIT = 1 << 20

numbers = st.one_of(I32.map(str), st.sampled_from(["0", "1", "3", "4", "-1", "", "x", "1 ", "007"]))
rarely = st.sampled_from
entries = rarely(
    ["UNIQ_KEY\x01A1", "UNIQ_KEY\x01A1", "UNIQ_KEY\x01B2C3", "UNIQ_KEY\x01", "UNIQ_KEY\x01é",
     "UNIQ_KEY\x01a b", "WAIT\x01true", "WAIT\x01false", "TAGS\x01a", "TAGS\x01a", "KEYS\x01k l",
     "DELAY\x013", "POP_CK\x011 2", "TRAN_MSG\x01true", "TIMER_DELIVER_MS\x019", "q\x01\"\\/\t",
     "z\x01\x00", "u\x01é", ""]
)  # fmt: skip
usual_text = st.lists(rarely(["TAGS\x01a", "KEYS\x01k l", "WAIT\x01true", 'q\x01"\\'])).map(
    lambda more: "\x02".join(["UNIQ_KEY\x01A1", *more])
)
texts = st.one_of(
    usual_text, usual_text.map("{}\x02".format), st.lists(entries, max_size=5).map("\x02".join)
)


@st.composite
def sends(draw: st.DrawFn) -> Command:
    """A send, usually a plain one, as clients write it in either codec."""
    ext = {
        "a": "group",
        "b": draw(rarely(["orders", "orders", "others"])),
        "c": "TBW102",
        "d": "4",
        "e": draw(rarely("0123")),
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": draw(texts),
        "j": "0",
        "k": "false",
        "l": "0",
        "m": "false",
        "n": "broker-a",
    }
    for name in draw(st.lists(rarely("befghjm"), max_size=1)):
        if name == "b":
            ext[name] = draw(st.one_of(rarely([*TOPICS, "%RETRY%g", "TBW102", "é"]), st.text()))
        else:
            ext[name] = draw(st.one_of(numbers, rarely(["true"])))
    for name in draw(st.lists(rarely("acdefghijklmn"), max_size=2)):
        del ext[name]
        ext.update(draw(rarely([{}, {}, {"AccessKey": "k"}, {"n": "brö"}, {"a": 'g"'}])))
        break
    return Command(
        code=draw(rarely([310, 310, 310, 310, 320, 11])), ext=ext,
        flag=draw(rarely([0, 0, 0, 2, 1])), opaque=draw(I32),
        language=draw(rarely(["JAVA", "GO"])), body=draw(st.binary(max_size=200)),
        codec=draw(rarely([0, 1])), remark=draw(rarely([None, None, None, "why"])),
    )  # fmt: skip


Tail: Any = twin("QueueTail")


class Queue(Tail):  # type: ignore[misc]
    """The end of a queue."""

    def __init__(self, topic: str, queue_id: int) -> None:
        self.topic_bytes, self.next = topic.encode(), 7 * queue_id


def rules_for(host: bytes, **changes: Any) -> SendRules:
    return SendRules(TOPICS, TAIL, host, 512, 150, 1000)._replace(**changes)


def cut(
    name: str,
    data: bytes,
    rules: SendRules | None,
    born: bytes,
    count_max: int = 99,
    access: SendAccess | None = None,
) -> Any:
    function = (twin if name == "fast" else pure)("cut_requests")
    return function(data, LIMIT, count_max, rules, born, access)


def commands(requests: list[Any]) -> list[Command]:
    return [
        each
        for request in requests
        for each in ([request] if isinstance(request, Command) else request.commands())
    ]


def stored(name: str, runs: list[Any], host: bytes) -> Any:
    """Everything that becomes of runs that are stored one behind the other."""
    queues: dict[tuple[str, int], Queue] = {}

    def open_queue(topic: str, queue_id: int) -> Queue:
        return queues.setdefault((topic, queue_id), Queue(topic, queue_id))

    for run in runs:
        run.place(queues, open_queue)
    for run in reversed(runs):
        run.take_back()
    untouched = {key: queue.next for key, queue in queues.items()}
    assert untouched == {key: 7 * key[1] for key in queues}
    for run in runs:
        run.place(queues, open_queue)
    encode_records = (twin if name == "fast" else pure)("encode_records")
    data, sizes = encode_records(runs, 4096, 1_700_000_000_005, host)
    assert sizes == [run.size for run in runs]
    return (
        data,
        {key: queue.next for key, queue in queues.items()},
        [(len(run), run.asked, run.answers(10), run.counts(BOUNDS)) for run in runs],
    )


def is_usual(command: Command) -> bool:
    """Whether the compiled kernel has no reason to leave a plain send to others."""
    others = [value for key, value in command.ext.items() if key != "i"]
    return (
        all(value.isascii() for value in command.ext.values())
        and not any('"' in value or "\\" in value for value in others)
        and not (command.codec == 1 and command.remark)
    )


@given(st.lists(sends(), max_size=8), hosts, hosts, st.integers(1, 9))
def test_runs_are_stored_and_answered_alike(
    sent: list[Command], born: bytes, host: bytes, count_max: int
) -> None:
    """
    Both kernels gather the same plain sends into the same runs, make the same records of them, give
    them the same places and write the same answers.
    """
    wire = b"".join(map(encode, sent))
    rules = rules_for(host)
    fast, slow = (
        cut("fast", wire, rules, born, count_max),
        cut("pure", wire, rules, born, count_max),
    )
    assert commands(fast[0]) == commands(slow[0])
    assert fast[1:] == slow[1:]
    if all(map(is_usual, commands(slow[0]))):
        assert list(map(type, fast[0])).count(Command) == list(map(type, slow[0])).count(Command)
        runs = [[r for r in each[0] if not isinstance(r, Command)] for each in (fast, slow)]
        assert stored("fast", runs[0], host) == stored("pure", runs[1], host)


@given(st.lists(sends(), max_size=6), hosts)
def test_what_is_in_a_run_is_plain(sent: list[Command], born: bytes) -> None:
    """
    A run has nothing but sends that are plain by the readable rule, and all neighbours of a kind.
    """
    rules = rules_for(bytes(8))
    requests = cut("fast", b"".join(map(encode, sent)), rules, born)[0]
    for request in requests:
        if not isinstance(request, Command):
            assert all(is_plain_send(each, rules, born) for each in request.commands())
    runs = [not isinstance(request, Command) for request in requests]
    assert (True, True) not in list(pairwise(runs))


@given(st.lists(sends(), min_size=1, max_size=6), st.integers(0, 1500), hosts)
def test_a_run_is_split_where_a_file_ends(sent: list[Command], room: int, born: bytes) -> None:
    """
    The front has as many records as fit, both parts together are what the run was, and both kernels
    split alike.
    """
    rules, host = rules_for(bytes(20)), bytes(20)
    parts = {}
    for name in ("fast", "pure"):
        requests = cut(name, b"".join(map(encode, filter(is_usual, sent))), rules, born)[0]
        run = next((r for r in requests if not isinstance(r, Command)), None)
        if run is None:
            return
        run.connection = "peer"
        whole, size, asked = run.commands(), run.size, run.asked
        front = run.split(room)
        runs = [run] if front is None else [front, run]
        assert front is None or (front.size <= room and front.connection == "peer")
        assert sum(each.size for each in runs) == size
        assert sum(each.asked for each in runs) == asked
        assert [each for part in runs for each in part.commands()] == whole
        runs = [each for each in runs if len(each)]
        parts[name] = stored(name, runs, host), [each.commands() for each in runs]
    assert parts["fast"] == parts["pure"]


@given(st.lists(sends(), min_size=1, max_size=3), st.integers(0, 1 << 16), st.integers(0, 255))
def test_a_damaged_byte_changes_no_verdict(sent: list[Command], where: int, value: int) -> None:
    """
    With one damaged byte the frames, and the error of the first bad one, are those of
    `cut_commands`.
    """
    wire = bytearray(b"".join(map(encode, sent)))
    wire[where % len(wire)] = value
    expected, used, error = twin("cut_commands")(bytes(wire), LIMIT, 99)
    requests, count, got_used, got_error = cut("fast", bytes(wire), rules_for(bytes(8)), bytes(8))
    assert commands(requests) == expected
    assert (count, got_used) == (len(expected), used)
    assert (type(error), str(error)) == (type(got_error), str(got_error))
    run = next((r for r in requests if not isinstance(r, Command)), None)
    if run is not None:
        rules = rules_for(bytes(8))
        assert all(is_plain_send(each, rules, bytes(8)) for each in run.commands())


def test_without_rules_nothing_is_plain() -> None:
    """
    A client, and a server with a guard, get commands only.
    """
    wire = encode(Command(code=310, ext={"b": "orders", "e": "0", "g": "1", "i": "UNIQ_KEY\x01A"}))
    for name in ("fast", "pure"):
        assert [type(each) for each in cut(name, wire, None, bytes(8))[0]] == [Command]
        run = cut(name, wire, rules_for(bytes(8)), bytes(8))[0][0]
        assert len(run) == 1
    assert isinstance(run, send_runs.SendRun)


@pytest.mark.parametrize("codec", [JSON_CODEC, BINARY_CODEC])
def test_long_properties_are_plain(codec: int) -> None:
    """
    Their length is no text: in a binary header it has bytes beyond ASCII from 128 on.
    """
    host = bytes(8)
    for size in (100, 128, 200, 300):
        ext = {
            "a": "g",
            "b": "orders",
            "e": "1",
            "g": "1",
            "i": f"UNIQ_KEY\x01A1\x02q\x01{'t' * size}",
        }
        wire = encode(Command(code=310, ext=ext, codec=codec, body=b"body"))
        requests = cut("fast", wire, rules_for(host), host)[0]
        assert [len(each) for each in requests] == [1]


SIGNER = RequestSigner(Credentials("shop", "secret"))
ACCESS = SendAccess(b"shop", SigningKey("secret").hmac, {"orders"})
HASHES: dict[str, bool] = {"fast": not isinstance(ACCESS.key, signing.HmacSha1), "pure": True}
"""Which kernel verifies by itself: the compiled one where the processor has SHA instructions."""
FORGERIES: list[Callable[[Command], object]] = [
    lambda sent: sent.ext.update(Signature="A" * 28),
    lambda sent: sent.ext.update(Signature=""),
    lambda sent: sent.ext.pop("Signature"),
    lambda sent: sent.ext.update(AccessKey="shap"),
    lambda sent: sent.ext.pop("AccessKey"),
    lambda sent: sent.ext.update(a="other"),
    lambda sent: sent.ext.update(b="others"),
    lambda sent: sent.ext.update(SecurityToken="t"),
    lambda sent: setattr(sent, "body", sent.body + b"!"),
]


@given(
    st.lists(st.tuples(sends(), st.sampled_from([None, None, None, *FORGERIES])), max_size=8), hosts
)
def test_signed_sends_are_gathered_alike(
    drawn: list[tuple[Command, Callable[[Command], object] | None]], host: bytes
) -> None:
    """
    Both kernels take the same signed sends; none is in a run whose signature is not right.
    """
    for command, forge in drawn:
        SIGNER.sign(command)
        if forge is not None:
            forge(command)
    wire = b"".join(encode(command) for command, _ in drawn)
    rules = rules_for(host)
    fast, slow = (cut(name, wire, rules, host, access=ACCESS) for name in ("fast", "pure"))
    assert commands(fast[0]) == commands(slow[0])
    if HASHES["fast"] and all(map(is_usual, commands(slow[0]))):
        assert [isinstance(each, Command) for each in fast[0]] == [
            isinstance(each, Command) for each in slow[0]
        ]
    for run in (each for each in fast[0] if not isinstance(each, Command)):
        for command in run.commands():
            assert command.ext["b"] == "orders"
            assert SigningKey("secret").verifies(command)


def test_a_right_signature_is_needed() -> None:
    """
    A plain send is taken with it in both codecs, and left to others without.
    """
    host = bytes(8)
    for codec in (JSON_CODEC, BINARY_CODEC):
        for forge in (None, *FORGERIES):
            ext = {"a": "g", "b": "orders", "e": "1", "g": "1", "i": "UNIQ_KEY\x01A1\x02q\x01r"}
            command = Command(code=310, ext=ext, codec=codec, body=b"body")
            SIGNER.sign(command)
            if forge is not None:
                forge(command)
            for name in ("fast", "pure"):
                wire = encode(command)
                requests = cut(name, wire, rules_for(host), host, access=ACCESS)[0]
                is_taken = HASHES[name] and forge is None
                assert [isinstance(each, Command) for each in requests] == [not is_taken]
