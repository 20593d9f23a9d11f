"""What the answer of a broker, or an error, means for the caller of a send."""

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import SendFailed
from gantrymq.client.sending.pending_send import PendingSend, SendTarget
from gantrymq.model import Queue, SendResult
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.messages import SendResponse


def failure_of(pending: PendingSend, error: GantryError) -> GantryError:
    """The error for the caller: the plain one if no broker was tried, else SendFailed."""
    if not pending.tried:
        return error
    failed = SendFailed(pending.prepared.topic, pending.tried, error)
    failed.__cause__ = error
    return failed


def result_of(status: str, msg_id: str, target: SendTarget, answer: Command) -> SendResult:
    """Read the few fields needed; parse the whole header only when one is missing or bad."""
    ext = answer.ext
    queue = target.queue
    try:
        offset_msg_id, offset = ext["msgId"], int(ext["queueOffset"])
        queue_id = int(ext["queueId"])
    except (KeyError, ValueError):
        header = SendResponse.parse(ext)  # raises, naming the field
        offset_msg_id, offset, queue_id = header.msg_id, header.queue_offset, header.queue_id
    if queue_id != queue.queue_id:
        queue = Queue(queue.topic, queue.broker_name, queue_id)
    return SendResult(
        status,
        msg_id,
        offset_msg_id,
        queue,
        offset,
        ext.get("transactionId"),
        ext.get("recallHandle"),
    )
