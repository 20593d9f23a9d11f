"""Turns an answer into the form that is recorded: what changes from run to run is replaced."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import lenient
import records
from wire import Frame

TIME_MS_MIN = 1_000_000_000_000
TIMES = {
    "1ST_POP_TIME",
    "PUSH_REPLY_TIME",
    "bornTimestamp",
    "consumeTimeStamp",
    "consumeTimeStampStr",
    "earliestMessageTimeStamp",
    "indexLastUpdateTimestamp",
    "lastTimestamp",
    "lastUpdateTimestamp",
    "maxTimeStamp",
    "maxTimeStampStr",
    "minTimeStamp",
    "minTimeStampStr",
    "popTime",
    "storeTimestamp",
    "subVersion",
    "timestamp",
}
NUMBERS = {
    "consumeTps",
    "counter",
    "delayTime",
    "indexLastUpdatePhyoffset",
    "physicOffset",
    "physicSize",
    "physicalOffset",
    "topicPutTps",
}
IDS = {"ORIGIN_MESSAGE_ID", "msgId", "offsetMsgId"}
# Ids that a client may have given: only those that the broker made up are replaced.
GIVEN_IDS = {"UNIQ_KEY", "transactionId"}
GIVEN_ID_PREFIX = "7F000001000018B4AAC2"
ORDERED_REVIVE_QUEUE = "999"
# Containers whose entries a step may narrow down to the ones it is about.
PICKABLE = {
    "offsetTable",
    "brokerAddrTable",
    "clusterAddrTable",
    "consumeStatsList",
    "data",
    "groupList",
    "subscriptionGroupTable",
    "table",
    "topicConfigTable",
    "topicList",
}
_JAVA_TIME = re.compile(r"20\d\d-\d\d-\d\d#[\d:]{12}")
_LOCAL = re.compile(r"\b127\.0\.0\.1:\d+")
_REMARK_END = re.compile(r"[\[(:,!<\d]|\bthe\b")


def answer(frame: Frame, names: Mapping[str, str], step: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded form of an answer; `names` maps words of this run to what stands for them."""
    recorded: dict[str, Any] = {
        "code": frame.code,
        "ext": {name: _leaf(name, value, names) for name, value in sorted(frame.ext.items())},
    }
    if frame.remark:
        recorded["remark"] = _REMARK_END.split(frame.remark, maxsplit=1)[0].strip()
    if frame.body:
        recorded["body"] = _body(frame.body, names, step.get("pick"))
        if step.get("shape"):
            recorded["body"] = _shape(recorded["body"])
        if step.get("names"):
            recorded["body"] = {"names": _names(recorded["body"])}
    if "without" in step:
        recorded = _without(recorded, step["without"])
    loose = step.get("loose")
    return _loosened(recorded, loose) if loose else recorded


def _without(value: Any, names: Sequence[str]) -> Any:
    """Without members that one of the two leaves out."""
    if isinstance(value, dict):
        return {k: _without(inner, names) for k, inner in value.items() if k not in names}
    return [_without(inner, names) for inner in value] if isinstance(value, list) else value


def _loosened(value: Any, names: Sequence[str]) -> Any:
    """Without the values that depend on what was said before this dialogue."""
    if isinstance(value, dict):
        return {
            name: "<any>" if name in names else _loosened(inner, names)
            for name, inner in value.items()
        }
    return [_loosened(inner, names) for inner in value] if isinstance(value, list) else value


def _body(body: bytes, names: Mapping[str, str], pick: Sequence[str] | None) -> Any:
    if records.is_records(body):
        messages = [_value("", message, names, None) for message in records.decode(body)]
        return {"messages": messages}
    if b"\0" in body:
        return {"hex": body.hex()}
    text = body.decode()
    if text[:1] in "{[":
        return {"json": _value("", lenient.loads(text), names, pick)}
    pairs = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if pairs:
        return {"properties": _value("table", pairs, names, pick)}
    return {"text": text}


def _value(key: str, value: Any, names: Mapping[str, str], pick: Sequence[str] | None) -> Any:
    if isinstance(value, dict):
        entries = {
            _leaf("", name, names): _value(name, inner, names, pick)
            for name, inner in sorted(value.items())
        }
        if pick is not None and key in PICKABLE and lenient.PAIRS not in entries:
            return {name: entry for name, entry in entries.items() if name in pick}
        return entries
    if isinstance(value, list):
        items = [_value(key, inner, names, pick) for inner in value]
        if pick is not None and key in PICKABLE:
            items = [item for item in items if _is_picked(item, pick)]
        # The order of what Java keeps in sets means nothing.
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    return _leaf(key, value, names)


def _is_picked(item: Any, pick: Sequence[str]) -> bool:
    """A name that is wanted, or an object about one."""
    names = item if isinstance(item, dict) else [item]
    return not set(names).isdisjoint(pick)


def _leaf(name: str, value: Any, names: Mapping[str, str]) -> Any:
    if name in NUMBERS and str(value).lstrip("-").replace(".", "").isdigit():
        return "<number>"
    if name in TIMES and str(value).isdigit() and int(value) >= TIME_MS_MIN:
        return "<time>"
    if name in TIMES and _JAVA_TIME.fullmatch(str(value)):
        return "<time>"
    if name == "version":
        return "<version>"
    if name == "POP_CK":
        return _handle(value)
    if name == "reviveQid" and value != ORDERED_REVIVE_QUEUE:
        return "<number>"
    if not isinstance(value, str):
        return value
    if name in IDS:
        return ",".join("<id>" for _ in value.split(","))
    if name in GIVEN_IDS and not value.startswith(GIVEN_ID_PREFIX):
        return "<id>"
    if "\x01" in value:  # a message's properties, whose order means nothing
        pairs = (entry.partition("\x01") for entry in value.split("\x02") if entry)
        return {key: _leaf(key, inner, names) for key, _, inner in sorted(pairs)}
    if name == "brokerAddr":  # of a topic list: that of any broker
        return "<address>"
    for word, placeholder in names.items():
        value = value.replace(word, placeholder)
    return _LOCAL.sub("<address>", value)


def _handle(text: str) -> str:
    """The receipt of a popped message without its time and its place in the revive log."""
    words = text.split(" ")
    words[1], words[3], words[5] = "<time>", "<number>", "<brokerName>"
    return " ".join(words)


def _names(body: Any) -> list[str]:
    """The names of a table alone; some end with a path of the machine."""
    (table,) = body.get("json", body).values()
    return sorted({re.sub(r"_/.*", "_<path>", name) for name in table})


def _shape(value: Any) -> Any:
    """Keys stay, leaves tell only their kind."""
    if isinstance(value, dict):
        return {name: _shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shape(inner) for inner in value]
    text = str(value)
    if text in {"true", "false", "True", "False"}:
        return "<boolean>"
    if text and all(re.fullmatch(r"-?\d+(\.\d+)?(E-?\d+)?", part) for part in text.split()):
        return "<number>" if len(text.split()) == 1 else "<numbers>"
    return "<text>"
