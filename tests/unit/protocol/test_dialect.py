"""Whole bodies out of pieces whose meaning RocketMQ's broker told.

`tests/dialogues/recordings/dialect-bodies.json` holds, for every kind of member and every way of
writing a value, what RocketMQ 5.3.3 made of it. Members do not influence each other, so the
recordings tell what any combination of them means.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.model import GroupConfig
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import Heartbeat
from gantrymq.protocol.publishing import EpochDecision, Stretch

RECORDING = Path(__file__).parents[2] / "dialogues" / "recordings" / "dialect-bodies.json"
RELEASE = "5.3.3"
REFUSED = object()

INTS = ["retryMaxTimes", "retryQueueNums", "groupSysFlag", "consumeTimeoutMinute"]
LONGS = ["brokerId", "whichBrokerWhenConsumeSlowly"]
BOOLS = ["consumeBroadcastEnable", "consumeEnable", "consumeFromMinEnable",
         "consumeMessageOrderly", "notifyConsumerIdsChangedEnable"]  # fmt: skip
RECORDED_AS = (
    dict.fromkeys(INTS, "retryMaxTimes")
    | dict.fromkeys(LONGS, "brokerId")
    | dict.fromkeys(BOOLS, "consumeBroadcastEnable")
)
ENUMS = ["consumeFromWhere", "consumeType", "messageModel"]
LISTS = ["tagsSet", "codeSet"]


@cache
def _recorded() -> dict[str, dict[str, Any]]:
    """Member to written value to what it means: REFUSED, None for the default, or a value."""
    found: dict[str, dict[str, Any]] = {}
    steps = json.loads(RECORDING.read_text())
    for told, asked in zip(steps[1::2], steps[2::2], strict=True):
        member, value = re.split(r" (?:of a group )?is ", told["name"], maxsplit=1)
        refused = told["answers"][RELEASE]["code"] != 0
        answer = asked["answers"][RELEASE].get("body", {}).get("json", {})
        meant = REFUSED if refused else _meaning(member, value, answer)
        found.setdefault(member, {})[value] = meant
    return found


def _meaning(member: str, value: str, answer: dict[str, Any]) -> Any:
    if "subscriptionTable" in answer:
        answer = {**answer, **answer["subscriptionTable"]["DialectTopic"]}
    default = msgspec.to_builtins(GroupConfig(group_name="")).get(member)
    meant = answer.get(member)
    nothing = value in ('""', '"null"', "null") and member != "subString"
    return None if nothing and meant == default else meant


def _written(member: str) -> st.SearchStrategy[tuple[str, Any]]:
    rows = _recorded()[RECORDED_AS.get(member, member)]
    # A null inside a list is kept by RocketMQ and dropped by us.
    usable = sorted(value for value in rows if value != "[null]")
    return st.sampled_from(usable).map(lambda value: (value, rows[value]))


def _members(names: list[str]) -> st.SearchStrategy[dict[str, tuple[str, Any]]]:
    return st.fixed_dictionaries({}, optional={name: _written(name) for name in names})


def _spelled(name: str, how: int) -> str:
    """A name as it is declared, in small letters, in snake case, or with hyphens."""
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
    return [name, name.lower(), snake, snake.replace("_", "-")][how]


extras = st.dictionaries(
    st.sampled_from(["strange", "more", "x1"]),
    st.sampled_from(["7", "null", '"a"', '{"groupName":[1,{}]}', "[[],{}]"]),
)
spellings = st.integers(0, 3)


def _object(pairs: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"


def _expect(body: str, kind: Any, members: dict[str, tuple[str, Any]]) -> Any:
    """The body as its type, or None when it was rightly refused."""
    if any(meant is REFUSED for _, meant in members.values()):
        with pytest.raises(ProtocolError):
            fastjson.load_request(body.encode(), kind)
        return None
    return msgspec.to_builtins(fastjson.load_request(body.encode(), kind))


class TestAsTheRealBrokerReadsIt:
    @given(_members([*INTS, *LONGS, *BOOLS]), extras, spellings, st.randoms())
    def test_settings_of_a_group(
        self, members: dict[str, tuple[str, Any]], more: dict[str, str], how: int, chance: Any
    ) -> None:
        """
        Every mixture of numbers, texts, booleans and nulls means what it means on RocketMQ.
        """
        pairs = [(_spelled(name, how), value) for name, (value, _) in members.items()]
        pairs += [("groupName", '"g"'), *more.items()]
        chance.shuffle(pairs)
        found = _expect(_object(pairs), GroupConfig, members)
        if found is None:
            return
        default = msgspec.to_builtins(GroupConfig(group_name="g"))
        wanted = {n: default[n] if meant is None else meant for n, (_, meant) in members.items()}

        assert {**default, **wanted} == found

    @given(_members(ENUMS), _members([*LISTS, "subString"]), extras, spellings)
    def test_heartbeats(
        self,
        consumer: dict[str, tuple[str, Any]],
        subscribed: dict[str, tuple[str, Any]],
        more: dict[str, str],
        how: int,
    ) -> None:
        """
        Enums by name or by ordinal, lists and texts of whatever, in any combination.
        """

        def said(members: dict[str, tuple[str, Any]]) -> list[tuple[str, str]]:
            return [(_spelled(name, how), value) for name, (value, _) in members.items()]

        subscription = _object([("topic", '"T"'), *said(subscribed), *more.items()])
        data = [("groupName", '"g"'), ("subscriptionDataSet", f"[{subscription}]")]
        body = _object(
            [("clientID", '"c"'), ("consumerDataSet", f"[{_object(data + said(consumer))}]")]
        )
        found = _expect(body, Heartbeat, {**consumer, **subscribed})
        if found is None:
            return
        (told,) = found["consumerDataSet"]
        (wanted,) = told["subscriptionDataSet"]

        assert {n: told[n] for n in consumer} == {n: meant for n, (_, meant) in consumer.items()}
        for name, (_, meant) in subscribed.items():
            default = "*" if name == "subString" else []
            assert (default if meant is None else meant) == wanted[name]


def test_structs_that_are_lists_are_read_as_they_are() -> None:
    """
    Epochs of the Spark sink: a stretch of staged messages is a list of its members.
    """
    stretch = Stretch(0, 5, 6, "orders", 1, "id")
    decision = EpochDecision(shares={"broker-a": [stretch]})

    assert decision == fastjson.load_as(msgspec.json.encode(decision), EpochDecision)


@pytest.mark.parametrize(
    "body",
    [
        b'{"strange":' + b"[" * 100_000,
        b'{"clientID":' + b"{" * 100_000,
        b'{"consumerDataSet":{{"a":1}:2}}',
        b'{"heartbeatFingerprint":1e999999999}',
        b'{"heartbeatFingerprint":Infinity}',
        b'{"heartbeatFingerprint":{{"a":1}:2}}',
        b'{"clientID":"c"/* no end',
    ],
    ids=lambda body: body[:40].decode(),
)
def test_what_nobody_can_read_is_refused(body: bytes) -> None:
    """
    Always by the same error, however odd the body is.
    """
    with pytest.raises(ProtocolError):
        fastjson.load_request(body, Heartbeat)
