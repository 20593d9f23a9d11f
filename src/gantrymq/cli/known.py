"""Topics and groups that a command is about must exist: a typo is an error, not an empty answer."""

import difflib
from collections.abc import Iterable

from gantrymq.client.admin import Admin
from gantrymq.client.errors import ClientError
from gantrymq.client.group_settings import settings
from gantrymq.model import dead_topic, retry_topic


class Unknown(ClientError):
    """No server knows this name."""


async def check_topic(admin: Admin, name: str) -> None:
    """Unknown unless a name server lists the topic."""
    names = await admin.topics()
    if name not in names:
        raise Unknown(_text("topic", name, names))


async def check_group(admin: Admin, name: str) -> None:
    """Unknown unless a broker has the group's settings, or what it left behind."""
    groups = await settings(admin)
    if name in groups:
        return
    left = {retry_topic(name), dead_topic(name)}
    if left.isdisjoint(await admin.topics()):
        raise Unknown(_text("group", name, groups))


async def check_names(
    namesrv: str | None, *, topics: Iterable[str] = (), groups: Iterable[str] = ()
) -> None:
    """All of them, asked over one connection."""
    async with Admin(namesrv) as admin:
        for topic in topics:
            await check_topic(admin, topic)
        for group in groups:
            await check_group(admin, group)


def _text(kind: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"`gantry {kind} list` shows those that exist"
    return f"there is no {kind} {name!r}; {hint}"
