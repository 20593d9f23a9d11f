"""The broker's tables: topics, groups, and the progress of groups and of delay levels.

Each is one JSON file in RocketMQ's format under `config/`. Unlike queues and index, they cannot be
derived from the commit log.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.errors import GantryError
from gantrymq.base.files import load_parsed
from gantrymq.base.offload import Offload
from gantrymq.base.saved import SavedFile
from gantrymq.model import DataVersion, GroupConfig, TopicConfig
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import TopicTable

log = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C")

FORBIDDEN = "forbiddenTable"
"""Group to topic to the permissions that the group has not, as bits of `perm`."""


class GroupTable(msgspec.Struct, kw_only=True, rename="camel"):
    """subscriptionGroup.json, and the answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    forbidden_table: dict[str, dict[str, int]] = {}
    subscription_group_table: dict[str, GroupConfig] = {}


class OffsetTable(msgspec.Struct, kw_only=True, rename="camel"):
    """consumerOffset.json, and the answer to GET_ALL_CONSUMER_OFFSET."""

    offset_table: dict[str, dict[str, int]] = {}


class DelayTable(msgspec.Struct, kw_only=True, rename="camel"):
    """delayOffset.json, and the answer to GET_ALL_DELAY_OFFSET."""

    offset_table: dict[str, int] = {}


def load_table(disk: Disk, path: str, kind: Callable[[], T]) -> T:
    """The table from a file, or from its backup; an empty one if neither was ever written."""

    def parse(text: str) -> T:
        return fastjson.load_as(text.encode(), kind)  # type: ignore[arg-type]

    found = load_parsed(disk, path, parse)
    return kind() if found is None else found


class NotSaved(GantryError):
    """The change could not be written to disk, so it was not made."""


class SavedTable(Generic[C]):
    """Settings of topics or groups by name, in one JSON file with a version."""

    def __init__(
        self,
        file: SavedFile,
        clock: WallClock,
        member: str,
        table: dict[str, C],
        version: DataVersion,
    ) -> None:
        self._file, self._clock, self._member = file, clock, member
        self.table, self.version = table, version
        self.beside: dict[str, dict[str, Any]] = {}
        """Other tables of the same file, by name; its version counts for them, too."""
        self.journal: Callable[[str, C | None], Awaitable[None]] | None = None
        """Of a raft group's leader: writes a change into the log; done when it is committed."""

    def get(self, name: str) -> C | None:
        return self.table.get(name)

    def put(self, name: str, config: C) -> None:
        """Add or replace in memory; `save` writes it to disk."""
        self._set(name, config)
        if self.journal is not None:
            self.journal(name, config)  # before the first message that needs it

    def apply(self, name: str, config: C | None) -> None:
        """Take a change that another member of the raft group made; its version comes later."""
        if config is None:
            self.table.pop(name, None)
        else:
            self.table[name] = config

    def renew_version(self) -> None:
        """Raise the version without a change in the table, so that name servers take it again."""
        self.version = self.version.next(self._clock.now_ms())

    async def change(self, name: str, config: C | None) -> None:
        """Replace, or with None delete, in memory and on disk; if that fails, change nothing."""
        await self.change_many({name: config})

    async def change_many(self, changes: Mapping[str, C | None]) -> None:
        """The same for many names, saved once."""
        before = {name: self.table.get(name) for name in changes}
        for name, config in changes.items():
            self._set(name, config)
        agreed = []
        if self.journal is not None:
            agreed = [self.journal(name, config) for name, config in changes.items()]
        try:
            await self.save()
        except OSError as error:
            for name, config in before.items():
                self._set(name, config)
            names = ", ".join(changes)
            raise NotSaved(f"{names} not changed, the table cannot be saved: {error}") from error
        for each in agreed:
            await each

    def _set(self, name: str, config: C | None) -> None:
        self.apply(name, config)
        self.renew_version()

    async def take_over(
        self,
        table: dict[str, C],
        version: DataVersion,
        beside: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        """Take a master's table with its version, in place: parts hold on to the dictionary."""
        if version == self.version:
            return
        _replace(self.table, table)
        for name, other in (beside or {}).items():
            _replace(self.beside[name], other)
        before, self.version = self.version, version
        try:
            await self.save()
        except OSError:
            self.version = before  # so that it is taken over, and saved, in the next round
            raise

    async def save(self) -> None:
        shape = {
            "dataVersion": msgspec.to_builtins(self.version),
            **self.beside,
            self._member: msgspec.to_builtins(self.table),
        }
        await self._file.save(fastjson.pretty(shape))


def _replace(table: dict[str, Any], wanted: dict[str, Any]) -> None:
    table.update(wanted)
    for name in table.keys() - wanted.keys():
        del table[name]


Topics = SavedTable[TopicConfig]
Groups = SavedTable[GroupConfig]


def _open_topics(disk: Disk, offload: Offload, clock: WallClock, directory: str) -> Topics:
    path = f"{directory}/topics.json"
    found = load_table(disk, path, TopicTable)
    file = SavedFile(disk, offload, path)
    table, version = found.topic_config_table, found.data_version
    return SavedTable(file, clock, "topicConfigTable", table, version)


def _open_groups(disk: Disk, offload: Offload, clock: WallClock, directory: str) -> Groups:
    path = f"{directory}/subscriptionGroup.json"
    found = load_table(disk, path, GroupTable)
    file = SavedFile(disk, offload, path)
    table, version = found.subscription_group_table, found.data_version
    groups = SavedTable(file, clock, "subscriptionGroupTable", table, version)
    groups.beside = {FORBIDDEN: found.forbidden_table}
    return groups


class Offsets:
    """The progress of each group in each queue (consumerOffset.json)."""

    def __init__(self, disk: Disk, offload: Offload, directory: str) -> None:
        path = f"{directory}/consumerOffset.json"
        self._file = SavedFile(disk, offload, path)
        loaded = load_table(disk, path, OffsetTable)
        self.table: dict[str, dict[int, int]] = _by_number(loaded.offset_table)
        self._pulled: dict[str, dict[int, int]] = {}
        """Where the next pull of each queue begins, by topic@group; not saved, as in RocketMQ."""
        self._changed = False
        self._names: _OffsetNames | None = None
        """Of the keys above; None when they have to be looked for again."""
        self.ceilings: Callable[[], dict[tuple[str, int], int]] = dict
        """(topic@group, queue) to the highest offset that may be saved yet; see broker/pop."""
        self.committed_here: dict[tuple[str, str, int], int] | None = None
        """Of a slave: what groups committed to it, by group, topic and queue; its master has to
        learn of it."""

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Store progress. It may go backwards: a reset does that."""
        key = f"{topic}@{group}"
        queues = self.table.get(key)
        if queues is None:
            queues = self.table[key] = {}
            if self._names is not None:
                self._names.add(key)
        queues[queue_id] = offset
        self._changed = True
        if self.committed_here is not None:
            self.committed_here[group, topic, queue_id] = offset

    def take_over(self, table: dict[str, dict[str, int]]) -> None:
        """Take the progress that a slave's master has."""
        found = _by_number(table)
        if found != self.table:
            self.table.clear()
            self.table.update(found)
            self._changed, self._names = True, None

    def shown(self) -> dict[str, dict[int, int]]:
        """The table as slaves may have it."""
        return self._under(self.ceilings())

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        queues = self.table.get(f"{topic}@{group}")
        return queues.get(queue_id) if queues is not None else None

    def note_pull(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """Note that the group got all messages below an offset; it may not have finished them."""
        key = f"{topic}@{group}"
        queues = self._pulled.get(key)
        if queues is None:
            queues = self._pulled[key] = {}
        queues[queue_id] = next_offset

    def pulled_to(self, group: str, topic: str, queue_id: int) -> int:
        """The offset of a group's next pull; without a pull since the start, its progress."""
        read = max(0, self.get(group, topic, queue_id) or 0)
        return max(read, self._pulled.get(f"{topic}@{group}", {}).get(queue_id, 0))

    def topics_of(self, group: str) -> list[str]:
        """Topics on which a group has ever stored progress."""
        return list(self._known_names().topics.get(group, ()))

    def groups_of(self, topic: str) -> list[str]:
        return list(self._known_names().groups.get(topic, ()))

    def _known_names(self) -> "_OffsetNames":
        if self._names is None:
            self._names = _OffsetNames(self.table)
        return self._names

    def delete_group(self, group: str) -> None:
        self._delete(lambda key: key.endswith(f"@{group}"))

    def delete_topic(self, topic: str) -> None:
        """Delete all progress in a topic, so that a new topic of that name starts without any."""
        self._delete(lambda key: key.startswith(f"{topic}@"))

    def _delete(self, is_meant: Callable[[str], bool]) -> None:
        for table in (self.table, self._pulled):
            for key in [key for key in table if is_meant(key)]:
                del table[key]
                self._changed, self._names = True, None

    def clamp(self, end_of: Callable[[str, int], int]) -> list[str]:
        """Pull progress back to the recovered end of each queue; returns a text for each change.

        Otherwise a message stored after a crash could get an offset that a group has passed.
        """
        said = []
        for key, queues in self.table.items():
            topic = key.rpartition("@")[0]
            for queue_id, offset in queues.items():
                end = end_of(topic, queue_id)
                if offset > end:
                    queues[queue_id] = end
                    self._changed = True
                    said.append(f"{key} queue {queue_id}: {offset} to {end}")
        return said

    async def save(self) -> None:
        if self._changed:
            ceilings = self.ceilings()
            self._changed = bool(ceilings)
            try:
                await self._file.save(fastjson.pretty({"offsetTable": self._under(ceilings)}))
            except OSError:
                self._changed = True
                raise

    def _under(self, ceilings: dict[tuple[str, int], int]) -> dict[str, dict[int, int]]:
        """The table with every offset limited to what may be saved yet."""
        shown = dict(self.table)
        for (key, queue_id), ceiling in ceilings.items():
            queues = shown.get(key, {})
            if queues.get(queue_id, 0) > ceiling:
                shown[key] = {**queues, queue_id: ceiling}
        return shown


class _OffsetNames:
    """The keys `topic@group` by group and by topic: tools ask for every group in turn."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.topics: dict[str, dict[str, None]] = {}
        self.groups: dict[str, dict[str, None]] = {}
        for key in keys:
            self.add(key)

    def add(self, key: str) -> None:
        topic, _, group = key.rpartition("@")
        self.topics.setdefault(group, {})[topic] = None
        self.groups.setdefault(topic, {})[group] = None


def _by_number(table: dict[str, dict[str, int]]) -> dict[str, dict[int, int]]:
    return {
        key: {int(queue): offset for queue, offset in queues.items()}
        for key, queues in table.items()
    }


class DelayOffsets:
    """The progress of each delay level (delayOffset.json)."""

    def __init__(self, disk: Disk, offload: Offload, directory: str) -> None:
        path = f"{directory}/delayOffset.json"
        self._file = SavedFile(disk, offload, path)
        loaded = load_table(disk, path, DelayTable)
        self.table = {int(level): offset for level, offset in loaded.offset_table.items()}
        self._saved: dict[int, int] = dict(self.table)

    async def save(self, reached: dict[int, int]) -> None:
        """Write the offsets of which all copies are durable."""
        if reached != self._saved:
            await self._file.save(fastjson.pretty({"offsetTable": reached}))
            self._saved = reached

    def withdraw(self) -> None:
        """Go back to what is saved: the copies of later messages may be cut off the log."""
        self.table = dict(self._saved)

    async def take_over(self, table: dict[str, int]) -> None:
        """Take the progress that a slave's master has."""
        self.table = {int(level): offset for level, offset in table.items()}
        await self.save(dict(self.table))

    def shown(self) -> dict[str, int]:
        """The table as slaves may have it: what was delivered so far is durable."""
        return {str(level): offset for level, offset in self._saved.items()}


class Registry:
    """The tables of one broker."""

    def __init__(self, disk: Disk, offload: Offload, clock: WallClock, root: str) -> None:
        directory = f"{root}/config"
        self.topics = _open_topics(disk, offload, clock, directory)
        self.groups = _open_groups(disk, offload, clock, directory)
        self.offsets = Offsets(disk, offload, directory)
        self.delays = DelayOffsets(disk, offload, directory)

    @property
    def forbidden(self) -> dict[str, dict[str, int]]:
        """Which topics each group may not use; see FORBIDDEN."""
        return self.groups.beside[FORBIDDEN]

    async def save(self) -> None:
        await self.topics.save()
        await self.groups.save()
        await self.offsets.save()
