"""One stored message, handed to one member of a group that somebody chose."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from msgspec import Meta

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable
from gantrymq.console.api.groups import known_group
from gantrymq.console.api.message import NamedMessage, message_at
from gantrymq.console.api.seen import Seen

TABLE = EndpointTable("messages")

TAKEN: Final = "CR_SUCCESS"
Name = Annotated[str, Meta(min_length=1, max_length=255)]


class ChosenMember(NamedMessage, frozen=True, kw_only=True):
    """A message, and who is to consume it."""

    group: Name
    client_id: Name
    """A member of the group that is connected."""


class DirectConsumption(Answer, frozen=True, kw_only=True):
    """What a member made of a message."""

    text: str
    result: str
    """RocketMQ's word: CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION and so on."""
    is_taken: bool
    """Whether the member is done with it."""
    remark: str
    """What the member said, behind the masking rules: an exception may quote the message."""
    took_ms: int | None
    """Milliseconds, if the member says so."""


@TABLE.post("/clusters/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}/consume")
async def consume_directly(ask: Ask, wanted: ChosenMember) -> DirectConsumption:
    """Let one member of a group consume a message now; the group's progress does not move.

    The member need not be subscribed to the topic. It gets the message as it is stored, and what it
    does with it happens: a letter that was consumed like this stays where it lies.
    """
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    await known_group(ask, admin, wanted.group)
    message = await message_at(admin, wanted)
    answer = await admin.consume_directly(message, wanted.group, wanted.client_id)
    return consumption(wanted.client_id, answer, seen.masker(message).error)


def consumption(
    client_id: str, answer: dict[str, Any], shown: Callable[[str], str]
) -> DirectConsumption:
    """RocketMQ's ConsumeMessageDirectlyResult in our words. Pure."""
    result = str(answer.get("consumeResult") or "unknown")
    spent, remark = answer.get("spentTimeMills"), answer.get("remark")
    took_ms = spent if isinstance(spent, int) and not isinstance(spent, bool) else None
    is_taken = result == TAKEN
    done = "consumed it" if is_taken else "did not take it"
    time = "" if took_ms is None else f" after {took_ms} ms"
    return DirectConsumption(
        text=f"{client_id} {done}{time}: {result}",
        result=result,
        is_taken=is_taken,
        remark=shown(remark) if isinstance(remark, str) else "",
        took_ms=took_ms,
    )
