"""Check that topics and groups exist: a misspelt name is an error, not an empty result."""

import difflib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.group_settings import settings
from gantrymq.client.core.errors import ClientError, NoNameServer
from gantrymq.model import dead_topic, retry_topic

SHOWN_MAX: Final = 5
"""Names that an error lists if none is similar."""


class UnknownName(ClientError):
    """No server, store or archive knows this name."""


async def check_topic(admin: Admin, name: str) -> None:
    """Raise UnknownName unless a name server lists the topic."""
    names = await admin.topics()
    if name not in names:
        raise UnknownName(_text("topic", name, names))


async def check_group(admin: Admin, name: str) -> None:
    """Raise UnknownName unless a broker has settings, retries or dead letters of the group."""
    groups = await settings(admin)
    if name in groups:
        return
    left = {retry_topic(name), dead_topic(name)}
    if left.isdisjoint(await admin.topics()):
        raise UnknownName(_text("group", name, groups))


async def check_names(
    namesrv: str | None, *, topics: Iterable[str] = (), groups: Iterable[str] = ()
) -> None:
    """Check topics and groups with one client."""
    async with Admin(namesrv) as admin:
        for topic in topics:
            await check_topic(admin, topic)
        for group in groups:
            await check_group(admin, group)


async def check_topic_or_archived(admin: Admin, archive: str, name: str) -> None:
    """Raise UnknownName unless a name server lists the topic or the archive has messages of it.

    A cluster that does not answer is no error: the archive may have the messages.
    """
    kept = archived_topics(archive)
    if name in kept:
        return
    try:
        live = await admin.topics()
    except NoNameServer:
        live = []
    if name not in live:
        raise UnknownName(_text("topic", name, [*live, *kept], f"in the cluster or in {archive}"))


def check_archived(archive: str | Path, *topics: str) -> None:
    """Raise UnknownName unless the archive has messages of each topic."""
    _check_all(topics, archived_topics(archive), f"in the archive {archive}")


def check_stored(store: str | Path, *topics: str, groups: Iterable[str] = ()) -> None:
    """Raise UnknownName unless the store has each topic, and progress of each group."""
    from gantrymq.store.files.folder import StoreFolder

    folder = StoreFolder(str(store))
    try:
        _check_all(topics, folder.topics(), f"in the store {store}")
    finally:
        folder.close()
    if groups := tuple(groups):
        from gantrymq.pipelines.staging.group_progress import stored_progress

        known = {row["group"] for row in stored_progress(Path(store), "", 0)}
        _check_all(groups, known, f"in the store {store}", kind="group")


def archived_topics(archive: str | Path) -> list[str]:
    """The topics of which an archive has messages."""
    from gantrymq.pipelines.lake import open_table  # only with an archive

    return sorted({file.topic for file in open_table(archive).files()})


def _check_all(
    names: Iterable[str], known: Collection[str], where: str, *, kind: str = "topic"
) -> None:
    for name in names:
        if name not in known:
            raise UnknownName(_text(kind, name, known, where))


def _text(kind: str, name: str, known: Iterable[str], where: str = "") -> str:
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"`gantry {kind} list` shows those that exist"
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif where:
        more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
        hint = f"there is {', '.join(names[:SHOWN_MAX]) or 'none'}{more}"
    return f"there is no {kind} {name!r}{' ' if where else ''}{where}; {hint}"
