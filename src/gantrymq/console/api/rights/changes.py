"""One change at all brokers that it is about."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from gantrymq.client.admin.at_each import at_each
from gantrymq.console.api.rights.members import HOW_TO_TURN_ON, MemberRules
from gantrymq.console.errors import BadInput

CONFIRMATION: Final = "type the name {name!r} to confirm: it says {given!r}"


async def change_each(
    what: str, members: Sequence[MemberRules], work: Callable[[MemberRules], Awaitable[object]]
) -> str:
    """Change them one after the other; the names of all.

    A broker that fails does not keep the others from being changed: the error names those that are
    done and those that are not.
    """
    by_name = {each.name: each for each in members}
    await at_each(what, by_name, lambda name: work(by_name[name]))
    return ", ".join(by_name)


def with_users(members: Sequence[MemberRules]) -> list[MemberRules]:
    """The brokers that a change of users is for; BadInput if there is none."""
    found = [each for each in members if each.should_have_users]
    if not found:
        raise BadInput(f"no broker of this cluster keeps users: {HOW_TO_TURN_ON}")
    return found


def with_accounts(members: Sequence[MemberRules]) -> list[MemberRules]:
    """The brokers that a change of accounts is for; BadInput if there is none."""
    found = [each for each in members if each.should_have_accounts]
    if not found:
        raise BadInput(f"no broker of this cluster has access files: {HOW_TO_TURN_ON}")
    return found


def check_confirmation(name: str, given: str) -> None:
    """BadInput unless the name was typed once more."""
    if given != name:
        raise BadInput(CONFIRMATION.format(name=name, given=given))


def source_of(members: Sequence[MemberRules], name: str) -> MemberRules:
    """The broker of a name, from which others get what it has; BadInput if there is none."""
    found = {each.name: each for each in members}
    if name not in found:
        raise BadInput(f"no broker {name!r}; there are {', '.join(found)}")
    if found[name].trouble is not None:
        raise BadInput(f"{name} does not tell what it has: {found[name].trouble}")
    return found[name]
