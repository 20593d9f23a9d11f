"""Properties, ids, batches, compression, tags: each against its vector and its law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.protocol import batch, compression, properties
from gantrymq.protocol.ids import (
    UniqueIds,
    decode_host,
    encode_host,
    offset_msg_id,
    parse_offset_msg_id,
)
from gantrymq.protocol.subscription import (
    BadSubscription,
    java_hash,
    parse_tags,
    subscription,
    tag_codes,
)

clean = st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=10
)


class TestProperties:
    @given(st.dictionaries(clean, clean))
    def test_what_is_written_is_read_back(self, found: dict[str, str]) -> None:
        """
        With the last separator, as 5.x writes it, and without, as 4.9 does.
        """
        text = properties.encode(found)

        assert found == properties.decode(text) == properties.decode(text.removesuffix("\x02"))

    @pytest.mark.parametrize("name, value", [("a\x01", "b"), ("a", "b\x02")])
    def test_separators_inside_are_refused(self, name: str, value: str) -> None:
        """
        They would change what the receiver reads.
        """
        with pytest.raises(ProtocolError, match="separator"):
            properties.encode({name: value})

    def test_damage_is_dropped_not_raised(self) -> None:
        """
        Entries without a name, a value or a mark between them are ignored, as RocketMQ does.
        """
        assert properties.decode(b"\x01x\x02a\x01b\x02nomark\x02c\x01\x02") == {"a": "b"}


class TestIds:
    def test_an_offset_id_is_the_vector(self) -> None:
        """
        Address, port and log offset in upper-case hex, and back.
        """
        text = offset_msg_id(encode_host("192.168.0.1", 10911), 123456)

        assert text == "C0A8000100002A9F000000000001E240"
        assert parse_offset_msg_id(text) == ("192.168.0.1", 10911, 123456)

    def test_an_ipv6_address_makes_a_long_id(self) -> None:
        """
        56 digits instead of 32.
        """
        text = offset_msg_id(encode_host("::1", 1), 2)

        assert (len(text), parse_offset_msg_id(text)) == (56, ("::1", 1, 2))

    @pytest.mark.parametrize("text", ["", "xyz", "C0A8", "C0A8000100002A9F000000000001E2"])
    def test_other_texts_are_no_offset_ids(self, text: str) -> None:
        """
        The error shows the text.
        """
        with pytest.raises(ProtocolError, match="offset message id"):
            parse_offset_msg_id(text)

    @given(st.ip_addresses(), st.integers(0, 65535))
    def test_hosts_survive_their_bytes(self, address: object, port: int) -> None:
        """
        IPv4 and IPv6 hosts decode to what was encoded.
        """
        assert (str(address), port) == decode_host(encode_host(str(address), port))

    def test_unique_ids_are_unique(self) -> None:
        """
        Also within one millisecond; the counter is part of them.
        """
        ids = UniqueIds(bytes(4), 1, 2, 0)
        made = [ids.next(1000 + n // 500) for n in range(5000)]

        assert (5000, {32}) == (len(set(made)), {len(one) for one in made})


class TestBatch:
    def test_an_item_is_the_vector(self) -> None:
        """
        50 bytes in all.
        """
        vector = (
            "000000320000000000000000000000000000000568656c6c6f0017554e49515f4b4559"
            "014142430254414753015461674102"
        )
        item = batch.Item(0, b"hello", b"UNIQ_KEY\x01ABC\x02TAGS\x01TagA\x02")

        assert (vector, [item]) == (batch.encode([item]).hex(), batch.decode(bytes.fromhex(vector)))

    @given(
        st.lists(
            st.builds(batch.Item, st.integers(0, 9), st.binary(max_size=9), st.binary(max_size=9))
        )
    )
    def test_what_is_packed_is_unpacked(self, items: list[batch.Item]) -> None:
        """
        Any number of messages.
        """
        assert items == batch.decode(batch.encode(items))

    @given(st.binary(min_size=1, max_size=60))
    def test_nonsense_is_refused_whole(self, data: bytes) -> None:
        """
        A batch is taken whole or not at all, and never ends in another error.
        """
        try:
            items = batch.decode(data)
        except ProtocolError:
            return
        assert data[:4] == batch.encode(items)[:4]


class TestCompression:
    @pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
    def test_each_kind_comes_back(self, kind: str) -> None:
        """
        With the bits a receiver needs to know how.
        """
        body = b"hello " * 1000
        packed, bits = compression.compress(body, kind)

        assert len(packed) < len(body)
        assert body == compression.decompress(packed, bits)

    def test_old_peers_name_no_kind(self) -> None:
        """
        Type 0 means zlib.
        """
        packed, _ = compression.compress(b"x" * 100, "zlib")

        assert compression.decompress(packed, compression.COMPRESSED) == b"x" * 100

    @pytest.mark.parametrize("bits", [0x1, 0x101, 0x201])
    def test_damage_is_a_protocol_error(self, bits: int) -> None:
        """
        Whatever the library would have raised.
        """
        with pytest.raises(ProtocolError):
            compression.decompress(b"not compressed", bits)


class TestTags:
    @pytest.mark.parametrize(
        "text, code",
        [
            ("TagA", 2598919),
            ("TagB", 2598920),
            ("标签", 857175),
            ("a very long tag name", -1611694806),
            ("", 0),
        ],
    )
    def test_the_hash_is_javas(self, text: str, code: int) -> None:
        """
        Over UTF-16 units, signed.
        """
        assert code == java_hash(text)

    @pytest.mark.parametrize(
        "text, tags", [("*", []), ("", []), (None, []), ("a", ["a"]), (" a ||b|| ", ["a", "b"])]
    )
    def test_expressions_name_tags(self, text: str | None, tags: list[str]) -> None:
        """
        A star, nothing and blanks mean all.
        """
        assert tags == parse_tags(text)

    def test_an_expression_of_bars_alone_is_an_error(self) -> None:
        """
        It would silently mean everything.
        """
        with pytest.raises(BadSubscription):
            parse_tags("||")

    def test_a_subscription_carries_the_codes(self) -> None:
        """
        What the broker compares with the queue entries.
        """
        wanted = subscription("T", "TagA || TagB")

        assert frozenset({2598919, 2598920}) == tag_codes(wanted)
        assert tag_codes(subscription("T", "*")) is None
