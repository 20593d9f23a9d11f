"""A stored message as RocketMQ's tools print it."""

import base64
import codecs
import json
import tempfile
from pathlib import Path
from typing import Any

from gantrymq.cli.mqadmin.command import WrongOption
from gantrymq.cli.mqadmin.values import shown_time
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue

BODIES = "rocketmq/msgbodys"
"""The folder below the machine's temporary one that RocketMQ's tools write bodies to."""


def fields_of(message: Received) -> dict[str, Any]:
    """A message for JSON."""
    try:
        body: dict[str, Any] = {"body": message.body.decode()}
    except UnicodeDecodeError:
        body = {"bodyBase64": base64.b64encode(message.body).decode()}
    return {
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_msg_id,
        "topic": message.topic,
        "tags": message.tags,
        "keys": list(message.keys),
        "brokerName": message.queue.broker_name,
        "queueId": message.queue.queue_id,
        "queueOffset": message.offset,
        "commitLogOffset": message.log_offset,
        "reconsumeTimes": message.reconsume_times,
        "bornTimestamp": message.born_ms,
        "storeTimestamp": message.store_ms,
        "bornHost": _address(message.born_host),
        "storeHost": _address(message.store_host),
        "sysFlag": message.sys_flag,
        "properties": message.properties,
        **body,
    }


def lines_of(message: Received, body_line: tuple[str, str]) -> list[str]:
    """A message as `queryMsgById` prints it; the last line is about its body."""
    keys = " ".join(message.keys)
    rows: list[tuple[str, Any]] = [
        ("OffsetID:", message.offset_msg_id),
        ("Topic:", message.topic),
        ("Tags:", f"[{message.tags or 'null'}]"),
        ("Keys:", f"[{keys or 'null'}]"),
        ("Queue ID:", message.queue.queue_id),
        ("Queue Offset:", message.offset),
        ("CommitLog Offset:", message.log_offset),
        ("Reconsume Times:", message.reconsume_times),
        ("Born Timestamp:", shown_time(message.born_ms)),
        ("Store Timestamp:", shown_time(message.store_ms)),
        ("Born Host:", _address(message.born_host)),
        ("Store Host:", _address(message.store_host)),
        ("System Flag:", message.sys_flag),
        ("Properties:", json.dumps(message.properties, ensure_ascii=False)),
        body_line,
    ]
    return [f"{name:<20} {value}" for name, value in rows]


def _address(host: tuple[str, int]) -> str:
    return f"{host[0]}:{host[1]}"


def queue_text(queue: Queue) -> str:
    """A queue as Java prints it."""
    return (
        f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
        f"queueId={queue.queue_id}]"
    )


def record_text(message: Received) -> str:
    """A message in one line as Java prints it, without its body."""
    properties = ", ".join(f"{name}={value}" for name, value in message.properties.items())
    return (
        f"MessageExt [brokerName={message.queue.broker_name}, queueId={message.queue.queue_id}, "
        f"storeSize={message.size}, queueOffset={message.offset}, sysFlag={message.sys_flag}, "
        f"bornTimestamp={message.born_ms}, bornHost=/{_address(message.born_host)}, "
        f"storeTimestamp={message.store_ms}, storeHost=/{_address(message.store_host)}, "
        f"msgId={message.offset_msg_id}, commitLogOffset={message.log_offset}, "
        f"reconsumeTimes={message.reconsume_times}, toString()=Message{{topic='{message.topic}', "
        f"flag={message.flag}, properties={{{properties}}}}}]"
    )


def body_text(message: Received, charset: str) -> str:
    """The body in a character set; what cannot be read is escaped."""
    return message.body.decode(charset, "backslashreplace")


def known_charset(name: str) -> str:
    """The name of a character set that Python knows."""
    try:
        codecs.lookup(name)
    except LookupError:
        raise ValueError(f"{name!r} is no character set, as UTF-8 or GBK are") from None
    return name


def save_body(message: Received) -> Path:
    """Write a body to a file of its own, as RocketMQ's tools do; returns its place."""
    folder = Path(tempfile.gettempdir()) / BODIES
    place = folder / Path(message.msg_id).name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place.write_bytes(message.body)
    except OSError as error:
        raise WrongOption(f"the body cannot be written to {place}: {error.strerror}") from error
    return place
