"""Recall: takes back a timer message that still waits at its broker."""

from typing import Final, Literal, NamedTuple

from gantrymq.base.errors import ProtocolError
from gantrymq.client.core.errors import BrokerRefused, ClientError
from gantrymq.client.core.instance import Instance
from gantrymq.client.sending.trace_sink import TraceSink
from gantrymq.model import check_topic_name
from gantrymq.protocol import calls
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.timers import RecallRequest
from gantrymq.protocol.recall import RecallHandle

STATE: Final = "recallState"
"""A field of our own in a broker's answer. RocketMQ's brokers answer without it."""
RecallState = Literal["RECALLED", "NOT_WAITING"]


class RecallRefused(ClientError):
    """The message cannot be recalled: its time has passed, or the handle is another broker's."""


class RecallResult(NamedTuple):
    """The result of a recall."""

    msg_id: str
    state: RecallState | None
    """RECALLED: it waited and will not be delivered. NOT_WAITING: there was nothing to recall.
    None: the broker does not tell; RocketMQ's answer success in either case."""


async def recall_message(
    instance: Instance, group: str, topic: str, handle: str, trace: TraceSink | None = None
) -> RecallResult:
    """Ask the broker of a waiting message not to deliver it."""
    check_topic_name(topic)
    try:
        meant = RecallHandle.decode(handle)
    except ProtocolError as error:
        raise RecallRefused(f"{handle[:80]!r} is no recall handle") from error
    await instance.routes.get(topic)
    address = instance.routes.address_of(meant.broker_name)
    header = RecallRequest(topic=topic, recall_handle=handle, producer_group=group)
    try:
        found, answer = await instance.call(address, calls.RECALL_MESSAGE, header)
    except BrokerRefused as error:
        if trace is not None:
            trace.recalled(topic, meant.msg_id, ok=False)
        if error.code == ResponseCode.ILLEGAL_OPERATION:
            raise RecallRefused(error.remark or "recall failed") from error
        raise
    state = _state(answer.ext.get(STATE))
    if trace is not None:
        trace.recalled(topic, found.msg_id, ok=state != "NOT_WAITING")
    return RecallResult(found.msg_id, state)


def _state(said: str | None) -> RecallState | None:
    if said == "RECALLED":
        return "RECALLED"
    return "NOT_WAITING" if said == "NOT_WAITING" else None
