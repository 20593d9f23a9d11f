"""The dialect of RocketMQ's bodies, read and written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.model import Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import ConsumeStatsList, LockRequest, OffsetWrapper

names = st.text(max_size=5).filter(lambda name: name != "$ref")
"""An object whose only member is `$ref` is a reference in the dialect, and no object."""
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


class TestReading:
    @given(values)
    def test_valid_json_is_read_as_json(self, value: Any) -> None:
        """
        Whatever json writes, the dialect reads the same.
        """
        assert value == fastjson.loads(json.dumps(value))

    @given(values)
    def test_the_slow_reader_agrees_with_the_quick_one(self, value: Any) -> None:
        """
        A stray comma sends the same text through the character-by-character reader.
        """
        assert [value] == fastjson.loads("[," + json.dumps(value) + ",]")

    @pytest.mark.parametrize(
        "text, expected",
        [
            ('{0:"a:1",1:"b"}', {"0": "a:1", "1": "b"}),
            ("{'a':'b'}", {"a": "b"}),
            ("{a:1,b:true,c:null}", {"a": 1, "b": True, "c": None}),
            ("[1,,2,]", [1, 2]),
            ('{"a":1.5e3}', {"a": 1500.0}),
            (r"{'a':'\u0041\x42\n'}", {"a": "AB\n"}),
        ],
    )
    def test_javas_liberties_are_taken(self, text: str, expected: Any) -> None:
        """
        Unquoted keys, single quotes and stray commas are read as fastjson reads them.
        """
        assert expected == fastjson.loads(text)

    def test_an_object_may_be_a_key(self) -> None:
        """
        Offset tables are keyed by whole queues.
        """
        text = '{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7}}'
        ((key, offset),) = fastjson.loads(text)["offsetTable"].items()

        assert (dict(key), offset) == ({"brokerName": "b", "queueId": 0, "topic": "T"}, 7)

    @pytest.mark.parametrize(
        "text, expected",
        [
            ('{"a":{"x":1},"b":{"$ref":"$.a"}}', {"a": {"x": 1}, "b": {"x": 1}}),
            ('{"a":[{"x":1},{"$ref":"$.a[0]"}]}', {"a": [{"x": 1}, {"x": 1}]}),
            ('{"a":{"$ref":"$.nowhere"}}', {"a": None}),
        ],
    )
    def test_references_are_resolved(self, text: str, expected: Any) -> None:
        """
        Java writes an object it has written before as a path to it.
        """
        assert expected == fastjson.loads(text)

    @pytest.mark.parametrize(
        "text", ["", "{", "[1", '{"a"', '{"a" 1}', "]", '"abc', "{1:2}}", "[" * 100]
    )
    def test_what_is_not_even_the_dialect_is_refused(self, text: str) -> None:
        """
        The error says where.
        """
        with pytest.raises(ProtocolError, match="character"):
            fastjson.loads(text)

    def test_a_body_becomes_its_declared_type(self) -> None:
        """
        Unquoted names and all.
        """
        body = b'{clientId:"c",consumerGroup:"g",mqSet:[{brokerName:"b",queueId:"1",topic:"T"}]}'

        assert [Queue("T", "b", 1)] == fastjson.load_as(body, LockRequest).mq_set

    def test_a_map_keyed_by_queues_becomes_its_declared_type(self) -> None:
        """
        Objects that are keys become the values that the type declares as keys.
        """
        queue = '{"brokerName":"b","queueId":1,"topic":"T"}'
        stats = f'{{"consumeTps":0.5,"offsetTable":{{{queue}:{{"brokerOffset":7}}}}}}'
        text = f'{{"consumeStatsList":[{{"G":[{stats}]}}],"totalDiff":7}}'

        found = fastjson.load_as(text, ConsumeStatsList)

        (row,) = found.consume_stats_list[0]["G"]
        assert {Queue("T", "b", 1): OffsetWrapper(broker_offset=7)} == row.offset_table
        assert 7 == found.total_diff


class TestWriting:
    def test_a_map_keyed_by_queues_is_written_as_java_does(self) -> None:
        """
        Compact, with the object itself as the key, members in alphabetical order.
        """
        key = {"brokerName": "b", "queueId": 0, "topic": "T"}
        text = fastjson.dump_object_keyed("offsetTable", [(key, 7)], consumeTps=0.0)

        assert (
            text
            == b'{"consumeTps":0.0,"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7}}'
        )

    def test_tables_have_tabs_and_bare_numbers_for_keys(self) -> None:
        """
        consumerOffset.json looks as RocketMQ left it, and is read back.
        """
        table = {"offsetTable": {"T@g": {0: 12, 1: 5}}}
        text = fastjson.pretty(table)

        assert text == '{\n\t"offsetTable":{\n\t\t"T@g":{\n\t\t\t0:12,\n\t\t\t1:5\n\t\t}\n\t}\n}'
        assert fastjson.loads(text) == {"offsetTable": {"T@g": {"0": 12, "1": 5}}}
