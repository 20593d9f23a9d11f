"""What a handler may return: RocketMQ's listeners say by a status what becomes of a message."""

from enum import Enum

from gantrymq.client.messages.delivery import Delivery


class ConsumeStatus(Enum):
    """A handler's verdict on what it was given; returning None is SUCCESS."""

    SUCCESS = "SUCCESS"
    """`CONSUME_SUCCESS`: done, never again."""
    RECONSUME_LATER = "RECONSUME_LATER"
    """Again later; in an ordered consumer in place (`SUSPEND_CURRENT_QUEUE_A_MOMENT`)."""
    DEAD = "DEAD"
    """Never again, to the dead letters."""


def is_done(value: object) -> bool:
    """Whether a handler's result says that the work is done."""
    return value is None or value is ConsumeStatus.SUCCESS


async def finish_by(status: ConsumeStatus, message: Delivery) -> None:
    """Carry a verdict out that is not success."""
    if status is ConsumeStatus.DEAD:
        await message.dead(reason="the handler returned DEAD")
    else:
        await message.retry(reason="the handler returned RECONSUME_LATER")
