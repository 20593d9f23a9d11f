"""Headers of both codecs, against known bytes and against themselves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel import cut_commands
from gantrymq.protocol.command import (
    BINARY_CODEC,
    FRAME_BYTES_MAX,
    JSON_CODEC,
    Command,
    decode_header,
    encode,
    response,
)

ROUTE_REQUEST = Command(code=105, ext={"topic": "T"}, opaque=7)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
commands = st.builds(
    Command,
    code=st.integers(0, 32767),
    ext=st.dictionaries(texts, texts, max_size=5),
    flag=st.integers(0, 3),
    language=st.sampled_from(["JAVA", "GO", "PYTHON", "NODE_JS"]),
    opaque=st.integers(0, 2**31 - 1),
    remark=st.none() | texts,
    version=st.integers(0, 500),
    body=st.binary(max_size=50),
    codec=st.sampled_from([JSON_CODEC, BINARY_CODEC]),
)


class TestVectors:
    def test_a_json_header_is_the_fact_sheets_bytes(self) -> None:
        """
        The JSON form of a route request is the golden vector, prefix included.
        """
        expected = (
            b'{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"PYTHON","opaque":7,'
            b'"serializeTypeCurrentRPC":"JSON","version":409}'
        )

        assert bytes.fromhex("000000810000007d") + expected == encode(ROUTE_REQUEST)

    def test_a_binary_header_is_the_fact_sheets_bytes(self) -> None:
        """
        The ROCKETMQ form of the same request is the golden vector, prefix included.
        """
        binary = Command(code=105, ext={"topic": "T"}, opaque=7, codec=BINARY_CODEC)
        header = "00690301990000000700000000000000000000000c0005746f7069630000000154"

        assert "0000002501000021" + header == encode(binary).hex()


class TestReading:
    @given(commands)
    def test_what_is_written_is_read_back(self, command: Command) -> None:
        """
        Every command survives its own codec.
        """
        wire = encode(command)

        assert ([command], len(wire), None) == cut_commands(bytearray(wire), FRAME_BYTES_MAX, 9)

    def test_numbers_and_booleans_become_javas_text(self) -> None:
        """
        ali-ons sends extension values as they are; Java would have printed them.
        """
        raw = {"code": 310, "extFields": {"e": 3, "k": False, "m": True, "i": "x", "z": None}}
        found = decode_header(0, json.dumps(raw).encode())

        assert found.ext == {"e": "3", "k": "false", "m": "true", "i": "x"}

    def test_missing_members_have_their_defaults(self) -> None:
        """
        Go leaves out what it does not need.
        """
        found = decode_header(0, b'{"code":34,"remark":"","opaque":5}')

        assert (found.code, found.opaque, found.flag, found.ext) == (34, 5, 0, {})

    @pytest.mark.parametrize(
        "codec, header",
        [
            (0, b""),
            (0, b"[]"),
            (0, b'{"opaque":1}'),
            (0, b'{"code":"x"}'),
            (0, b"\xff\xfe"),
            (1, b"\x00" * 20),
            (
                1,
                b"\x00\x69\x03\x01\x99\x00\x00\x00\x07\x00\x00\x00\x00\x7f\xff\xff\xff"
                + b"\x00" * 8,
            ),
            (2, b"{}"),
        ],
    )
    def test_nonsense_is_a_protocol_error(self, codec: int, header: bytes) -> None:
        """
        A header that is none raises the one error the server answers by closing.
        """
        with pytest.raises(ProtocolError):
            decode_header(codec, header)

    def test_a_code_over_16_bits_needs_json(self) -> None:
        """
        POP codes cannot travel in the binary header, and say so.
        """
        with pytest.raises(ProtocolError, match="200050"):
            encode(Command(code=200050, codec=BINARY_CODEC))

    def test_a_response_mirrors_codec_and_opaque(self) -> None:
        """
        ali-ons reads only the codec it sent.
        """
        request = Command(code=1, opaque=9, codec=BINARY_CODEC)
        answer = response(request, 17, remark="no")

        assert (answer.code, answer.opaque, answer.flag, answer.codec) == (17, 9, 1, BINARY_CODEC)


class TestFrames:
    @given(sent=st.lists(commands), step=st.integers(1, 64))
    def test_frames_do_not_depend_on_how_bytes_arrive(self, sent: list[Command], step: int) -> None:
        """
        However the network cuts the stream, the same commands come out.
        """
        wire, buffer, got = b"".join(map(encode, sent)), bytearray(), []
        for at in range(0, len(wire), step):
            buffer += wire[at : at + step]
            found, used, error = cut_commands(buffer, FRAME_BYTES_MAX, 100)
            assert error is None
            got += found
            del buffer[:used]

        assert sent == got

    @pytest.mark.parametrize("head", ["ffffffff00000000", "0100000100000000", "0000000400000001"])
    def test_impossible_sizes_are_refused_before_anything_is_kept(self, head: str) -> None:
        """
        A frame over 16 MiB, or a header larger than its frame, is an error at its first 8 bytes.
        """
        found, used, error = cut_commands(bytearray.fromhex(head), FRAME_BYTES_MAX, 9)

        assert ([], 0, ProtocolError) == (found, used, type(error))
