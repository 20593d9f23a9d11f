"""Taking back a message that waits at its broker for a time of its own."""

from gantrymq.base.errors import ProtocolError
from gantrymq.client.errors import BrokerRefused, ClientError
from gantrymq.client.instance import Instance
from gantrymq.client.tracing import TraceSink
from gantrymq.model import check_topic_name
from gantrymq.protocol import calls
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.timers import RecallRequest
from gantrymq.protocol.recall import RecallHandle


class RecallRefused(ClientError):
    """The message cannot be recalled: it is delivered, or it never waited there."""


async def recall_message(
    instance: Instance, group: str, topic: str, handle: str, trace: TraceSink | None = None
) -> str:
    """Ask the broker where the message waits; returns its id.

    RocketMQ answers the same whether the message was there or not.
    """
    check_topic_name(topic)
    try:
        meant = RecallHandle.decode(handle)
    except ProtocolError as error:
        raise RecallRefused(f"{handle[:80]!r} is no recall handle") from error
    await instance.routes.get(topic)
    address = instance.routes.address_of(meant.broker_name)
    header = RecallRequest(topic=topic, recall_handle=handle, producer_group=group)
    try:
        found, _ = await instance.call(address, calls.RECALL_MESSAGE, header)
    except BrokerRefused as error:
        if trace is not None:
            trace.recalled(topic, meant.msg_id, ok=False)
        if error.code == ResponseCode.ILLEGAL_OPERATION:
            raise RecallRefused(error.remark or "recall failed") from error
        raise
    if trace is not None:
        trace.recalled(topic, found.msg_id, ok=True)
    return found.msg_id
