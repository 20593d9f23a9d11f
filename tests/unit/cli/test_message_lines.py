"""Lines of JSON as messages: what they may say, and what is refused with which words."""

import json
from typing import Any

import pytest

from gantrymq.cli.common.message_lines import LineRefused, MessageDefaults, read_line

DEFAULTS = MessageDefaults("orders", "paid", ("k0",), {"a": "1"}, delay=5.0)


def read(value: Any, defaults: MessageDefaults = DEFAULTS) -> Any:
    return read_line(json.dumps(value).encode(), 7, defaults)


def test_a_line_has_everything_that_a_message_has() -> None:
    """
    Its own values stand above those of the options, and properties are joined.
    """
    message = read(
        {
            "body": "a book", "tags": "new", "keys": ["k1", "k2"], "properties": {"b": "2"},
            "delay": 1.5, "shardingKey": "customer-1",
        }
    )  # fmt: skip
    assert ("orders", b"a book", "new", ("k1", "k2")) == (
        message.topic, message.body, message.tags, message.keys,
    )  # fmt: skip
    assert ({"a": "1", "b": "2"}, 1.5) == (message.properties, message.delay)
    assert "customer-1" == message.sharding_key


def test_what_a_line_does_not_say_comes_from_the_options() -> None:
    """
    Tag, keys, properties and the delay.
    """
    message = read({"body": "x"})
    assert ("paid", ("k0",), {"a": "1"}, 5.0) == (
        message.tags, message.keys, message.properties, message.delay,
    )  # fmt: skip


def test_a_time_of_the_line_takes_the_place_of_the_options() -> None:
    """
    A level instead of a delay: a message has one of them only.
    """
    message = read({"body": "x", "delayLevel": 3})
    assert (3, None) == (message.delay_level, message.delay)
    assert 1_900_000_000_000 == read({"body": "x", "deliverAt": 1_900_000_000_000}).deliver_at


@pytest.mark.parametrize(
    "value, body",
    [
        ({"body": {"price": 7}}, b'{"price": 7}'),
        ({"body": 5}, b"5"),
        ({"bodyBase64": "/wA="}, b"\xff\x00"),
        ({"bodyHex": "ff 00"}, b"\xff\x00"),
        ({"body": "x", "msgId": "A", "queueId": 1, "storeTime": 5, "topic": "other"}, b"x"),
    ],
)
def test_bodies_are_text_json_or_bytes(value: dict[str, Any], body: bytes) -> None:
    """
    What `gantry tail -o jsonl` prints can be sent again as it is.
    """
    message = read(value)
    assert (body, "orders") == (message.body, message.topic)


@pytest.mark.parametrize(
    "line, text",
    [
        (b"{", "line 7 is no JSON"),
        (b"[1]", 'line 7: write an object, {"body": "text"}'),
        (b'{"body":"x","tag":"a"}', "line 7: no field 'tag'; did you mean 'tags'?"),
        (b'{"body":"x","zzz":"a"}', "line 7: no field 'zzz'; there is body, bodyBase64"),
        (b"{}", "line 7: write one of body, bodyBase64, bodyHex, not none"),
        (b'{"body":"x","bodyHex":"00"}', "not body and bodyHex"),
        (b'{"bodyBase64":"="}', "line 7: bodyBase64:"),
        (b'{"bodyHex":"zz"}', "line 7: bodyHex:"),
        (b'{"body":"x","delay":"soon"}', "line 7: "),
        (b'{"body":"x","keys":5}', "line 7: "),
        (b'{"body":"x","properties":[1]}', "line 7: "),
        (b'{"body":"x","delay":1,"delayLevel":2}', "line 7: "),
        (b"[" * 100_000, "line 7 is no JSON"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(line: bytes, text: str) -> None:
    """
    The words say what is wrong, and what to write.
    """
    with pytest.raises(LineRefused) as caught:
        read_line(line, 7, DEFAULTS)
    assert text in str(caught.value)
