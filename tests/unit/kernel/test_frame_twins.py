"""Frames and answers: the compiled kernel gives what the readable one gives."""

import struct
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from twins import I16, I32, I64, pure, twin

from gantrymq.protocol.command import Command, encode

LIMIT = 1 << 16

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
extensions = st.dictionaries(
    st.one_of(st.sampled_from(["a", "b", "queueId", "topic"]), texts), texts, max_size=6
)


@st.composite
def commands(draw: st.DrawFn) -> Command:
    """A command as a peer may send it, in either codec."""
    codec = draw(st.sampled_from([0, 1]))
    return Command(
        code=draw(I16), ext=draw(extensions), flag=draw(st.sampled_from([0, 1, 2, 3])),
        language=draw(st.sampled_from(["JAVA", "GO", "PYTHON", "OTHER"])), opaque=draw(I32),
        remark=draw(st.one_of(st.none(), texts)), version=draw(I16),
        body=draw(st.binary(max_size=64)), codec=codec,
    )  # fmt: skip


def cut(name: str, data: bytes, size_max: int = LIMIT, count_max: int = 100) -> Any:
    """Everything that cutting a buffer gives, in a form that can be compared."""
    buffer = bytearray(data)
    found, used, error = (twin if name == "fast" else pure)("cut_commands")(
        buffer, size_max, count_max
    )
    del buffer[:used]  # nobody still holds the buffer
    return found, [command.codec for command in found], used, error and (type(error), str(error))


def same(data: bytes, size_max: int = LIMIT, count_max: int = 100) -> Any:
    first, second = cut("fast", data, size_max, count_max), cut("pure", data, size_max, count_max)
    assert first == second
    return first


def frame(codec: int, header: bytes, body: bytes = b"") -> bytes:
    size = 4 + len(header) + len(body)
    return struct.pack(">II", size, codec << 24 | len(header)) + header + body


@given(st.lists(commands(), max_size=5), st.integers(0, 40))
def test_whole_frames_come_out_and_a_cut_one_waits(sent: list[Command], missing: int) -> None:
    """
    Both kernels return all whole frames, and keep the bytes of an incomplete one.
    """
    wire = b"".join(map(encode, sent))
    assert len(same(wire)[0]) == len(sent)
    same(wire[: len(wire) - missing])


@given(st.lists(commands(), min_size=1, max_size=3), st.integers(0, 1 << 16), st.integers(0, 255))
def test_a_damaged_byte_is_judged_alike(sent: list[Command], where: int, value: int) -> None:
    """
    Both kernels give the same frames or the same error for a frame with one damaged byte.
    """
    wire = bytearray(b"".join(map(encode, sent)))
    wire[where % len(wire)] = value
    same(bytes(wire))


@given(st.binary(max_size=80), st.integers(0, 2))
@example(bytes(21), 1)
@example(b"\x00\x0a\x0e\x01\x99" + bytes(16), 1)
def test_any_header_is_judged_alike(header: bytes, codec: int) -> None:
    """
    Both kernels give the same result for any bytes as a header.
    """
    same(frame(codec, header, b"body"))


@given(st.binary(max_size=64))
def test_any_bytes_are_judged_alike(data: bytes) -> None:
    """
    Both kernels give the same result for any bytes.
    """
    same(data)


def binary_header(ext: bytes, remark: bytes = b"", ext_size: int | None = None) -> bytes:
    head = struct.pack(">hBhiii", 310, 0, 401, 7, 0, len(remark))
    size = len(ext) if ext_size is None else ext_size
    return head + remark + struct.pack(">i", size) + ext


def field(key: bytes, value: bytes, key_size: int | None = None, size: int | None = None) -> bytes:
    key_size = len(key) if key_size is None else key_size
    size = len(value) if size is None else size
    return struct.pack(">h", key_size) + key + struct.pack(">i", size) + value


sizes = st.one_of(st.none(), st.integers(-2, 12))


@given(
    st.lists(
        st.builds(field, st.binary(max_size=6), st.binary(max_size=6), sizes, sizes), max_size=4
    ),
    st.binary(max_size=4),
    st.one_of(st.none(), st.integers(-5, 60)),
)
def test_binary_fields_of_any_shape_are_judged_alike(
    fields: list[bytes], remark: bytes, ext_size: int | None
) -> None:
    """
    Both kernels give the same result for any fields of a binary header.
    """
    same(frame(1, binary_header(b"".join(fields), remark, ext_size)))


scalars = st.one_of(
    texts, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False), st.lists(texts)
)


@given(
    st.fixed_dictionaries(
        {"code": I32},
        optional={
            "extFields": st.one_of(st.none(), st.dictionaries(texts, scalars, max_size=4)),
            "language": st.one_of(st.none(), texts, st.integers(-1, 20)),
            "opaque": st.one_of(st.none(), I64, st.text(max_size=3)),
            "flag": st.one_of(st.none(), I32),
            "remark": st.one_of(st.none(), texts),
            "serializeTypeCurrentRPC": st.just("JSON"),
            "version": st.one_of(st.none(), I32),
        },
    )
)
def test_json_headers_as_lenient_peers_write_them_are_read_alike(header: dict[str, Any]) -> None:
    """
    Both kernels read JSON headers with missing and additional fields alike.
    """
    same(frame(0, msgspec.json.encode(header)))


def test_numbers_in_place_of_strings_are_read_as_java_prints_them() -> None:
    """
    Numbers, booleans and null in extFields become the strings that Java prints.
    """
    header = b'{"code":10,"extFields":{"queueId":3,"order":true,"gone":null},"opaque":1}'
    found = same(frame(0, header))[0]
    assert found[0].ext == {"queueId": "3", "order": "true"}


@given(st.lists(commands(), min_size=2, max_size=4), st.integers(0, 4), st.integers(8, 200))
def test_limits_hold_in_both(sent: list[Command], count_max: int, size_max: int) -> None:
    """
    Both kernels stop at the limit of frames and refuse frames over the limit of bytes.
    """
    wire = b"".join(map(encode, sent))
    assert len(same(wire, LIMIT, count_max)[0]) == min(len(sent), count_max)
    same(wire, size_max)


def test_a_frame_over_the_limit_is_refused_before_it_is_there() -> None:
    """
    A frame over the size limit is refused when its prefix is there, after those before it.
    """
    wire = encode(Command(code=1)) + struct.pack(">II", LIMIT, 10)
    found, _, used, error = same(wire)
    assert len(found) == 1
    assert used == len(wire) - 8
    assert "over the limit" in error[1]


ids = st.one_of(st.text("0123456789ABCDEF,", max_size=70), texts, st.just("F" * 2000))
numbers = st.one_of(I64, st.integers(0, 100), st.integers(1 << 63, 1 << 70))


@given(st.tuples(st.sampled_from([0, 1]), I16, st.one_of(I32, numbers), ids, numbers, numbers, ids))
def test_answers_to_sends_have_the_same_bytes(arguments: tuple[Any, ...]) -> None:
    """
    Both kernels encode the answer to a send to the same bytes.
    """
    assert result("send_answer", arguments) == result("send_answer", arguments, compiled=False)


@given(
    st.tuples(
        st.sampled_from([0, 1]), I16, st.one_of(I32, numbers), ids, numbers, numbers, numbers,
        numbers, st.integers(0, 1 << 33),
    )
)  # fmt: skip
def test_answers_to_pulls_have_the_same_bytes(arguments: tuple[Any, ...]) -> None:
    """
    Both kernels encode the answer to a pull to the same bytes.
    """
    assert result("pull_answer", arguments) == result("pull_answer", arguments, compiled=False)


def result(name: str, arguments: tuple[Any, ...], *, compiled: bool = True) -> Any:
    try:
        return (twin if compiled else pure)(name)(*arguments)
    except Exception as error:
        return type(error), str(error)


@given(commands())
def test_an_answer_can_be_cut_again(command: Command) -> None:
    """
    An encoded answer decodes to the opaque and the fields that it was made of.
    """
    answer = twin("send_answer")(command.codec, 0, command.opaque, "AB", 3, 9, "id")
    (again,), _, _, _ = same(answer)
    assert again.opaque == command.opaque
    assert again.ext["queueOffset"] == "9"


numbers = st.one_of(
    I64.map(str), st.sampled_from(["0", "-0", "01", "1.0", "1e3", "+1", "", "-", "null", '"1"',
                                   "9" * 18, "9" * 19, "-" + "9" * 18, "9" * 40]),
)  # fmt: skip
pieces = st.one_of(
    st.sampled_from(["a", "TAGS\\u0001a\\u0002", "\\u0041", "\\u00e9", "\\ud83d\\ude00", "\\ud800",
                     "\\n\\t\\r\\b\\f", '\\"\\\\\\/', "\\x", "\\u00", "\\u00g1", "é", "字", "\x7f",
                     "\n", "\x01", " "]),
    st.text("ab{}:,é", max_size=4), st.just("x" * 4090),
)  # fmt: skip
quoted = st.lists(pieces, max_size=3).map(lambda parts: f'"{"".join(parts)}"')
fields = st.lists(
    st.tuples(st.one_of(quoted, st.sampled_from(['"a"', '"b"', '"topic"'])),
              st.one_of(quoted, st.sampled_from(["null", "7", "true", "{}", '[1,"x"]']))),
    max_size=4,
).map(lambda each: "{" + ",".join(f"{name}:{value}" for name, value in each) + "}")  # fmt: skip


@st.composite
def json_headers(draw: st.DrawFn) -> bytes:
    """A header as clients write it, more or less."""
    text = st.one_of(quoted, st.just('"JAVA"'))
    members = [
        ('"code"', draw(numbers)),
        ('"extFields"', draw(st.one_of(fields, st.just("null")))),
        ('"flag"', draw(numbers)),
        ('"language"', draw(text)),
        ('"opaque"', draw(numbers)),
        ('"remark"', draw(st.one_of(text, st.just("null")))),
        ('"serializeTypeCurrentRPC"', draw(st.sampled_from(['"JSON"', '"ROCKETMQ"', "1"]))),
        ('"version"', draw(numbers)),
        ('"other"', draw(quoted)),
    ]
    chosen = draw(st.lists(st.sampled_from(members), min_size=1, max_size=9, unique=True))
    if draw(st.integers(0, 4)) == 0:
        chosen.append(draw(st.sampled_from(members)))
    colon, comma = draw(st.sampled_from([(":", ",")] * 6 + [(": ", ", "), (":", ",,")]))
    inner = comma.join(f"{name}{colon}{value}" for name, value in chosen)
    end = draw(st.sampled_from(["}"] * 8 + ["} ", "", "}}", ",}"]))
    return ("{" + inner + end).encode("utf-8", "surrogatepass")


@given(json_headers(), st.one_of(st.none(), st.tuples(st.integers(0, 4_000), st.integers(0, 255))))
@example(b'{"code":1,"extFields":{"i":"UNIQ_KEY\\u0001A\\u0002"},"opaque":3}', None)
@example(b'{"code":1,"extFields":{"\xff":"a"}}', None)
@example(b'{"code":1,"remark":"\xed\xa0\x80"}', None)
def test_headers_in_json_are_judged_alike(header: bytes, damage: tuple[int, int] | None) -> None:
    """
    Both kernels read the same of a header in JSON, plain or odd, whole or with one damaged byte.
    """
    data = bytearray(header)
    if damage is not None:
        data[damage[0] % len(data)] = damage[1]
    same(frame(0, bytes(data), b"body"))
