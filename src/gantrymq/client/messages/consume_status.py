"""The status that a handler may return, as RocketMQ's listeners do."""

from enum import Enum

from gantrymq.client.messages.delivery import Delivery


class ConsumeStatus(Enum):
    """What happens to the messages of a handler call; None counts as SUCCESS."""

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
    """Finish a message by a status other than SUCCESS."""
    if status is ConsumeStatus.DEAD:
        await message.dead(reason="the handler returned DEAD")
    else:
        await message.retry(reason="the handler returned RECONSUME_LATER")
