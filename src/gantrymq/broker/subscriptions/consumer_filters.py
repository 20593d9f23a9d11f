"""SQL conditions of groups, checked while messages are stored (consumerFilter.json of RocketMQ).

A bitmap beside each message says which groups' conditions it matched, so that pulls skip others
without reading them. The bits count only for messages stored after the condition came, and only
once the condition is on disk: if a crash loses a condition, its bits would be read for another one.
Until it is on disk every message counts as matching.
"""

import logging
from collections.abc import Callable, Iterable

import msgspec

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.files import load_text
from gantrymq.base.offload import Offload
from gantrymq.base.saved import SavedFile
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.filter import BadSql, Condition, condition
from gantrymq.filter.bloom import Bloom, mask_of
from gantrymq.model import Subscription
from gantrymq.protocol import fastjson
from gantrymq.store.queues.queueext import Mark

log = logging.getLogger(__name__)

SAVE_SECONDS = 10.0
DEAD_BEFORE_START_MS = 30_000
SQL = "SQL92"


class BloomData(msgspec.Struct, kw_only=True, rename="camel"):
    bit_num: int = 0
    bit_pos: list[int] = []


class FilterData(msgspec.Struct, kw_only=True, rename="camel"):
    """One group's condition for one topic."""

    bloom_filter_data: BloomData = msgspec.field(default_factory=BloomData)
    born_offset: int = -1
    """Ours: where the log ended when it came. Unlike time, that never goes back."""
    born_time: int = 0
    client_version: int = 0
    consumer_group: str = ""
    dead: bool = False
    dead_time: int = 0
    expression: str = ""
    expression_type: str = SQL
    topic: str = ""


class TopicFilters(msgspec.Struct, kw_only=True, rename="camel"):
    group_filter_data: dict[str, FilterData] = {}
    topic: str = ""


class FilterFile(msgspec.Struct, kw_only=True, rename="camel"):
    filter_data_by_topic: dict[str, TopicFilters] = {}


class _Filter:
    """A parsed condition, its bits, and whether it is on disk."""

    __slots__ = ("condition", "data", "is_saved", "mask")

    def __init__(self, data: FilterData, made: Condition, *, is_saved: bool) -> None:
        self.data, self.condition, self.is_saved = data, made, is_saved
        self.mask = mask_of(data.bloom_filter_data.bit_pos)


class FilterTable:
    """The conditions of all groups, with those that are out of use for a short time."""

    def __init__(
        self, config: BrokerConfig, disk: Disk, offload: Offload, clock: WallClock
    ) -> None:
        self._clock, self._keep_ms = clock, config.filter_data_clean_time_span
        self._bloom = Bloom(
            config.max_error_rate_of_bloom_filter, config.expect_consumer_num_use_filter
        )
        path = f"{config.store_path_root_dir}/config/consumerFilter.json"
        self._file = SavedFile(disk, offload, path)
        self._topics: dict[str, dict[str, _Filter]] = {}
        self._by_bytes: dict[bytes, list[_Filter]] = {}
        self._changed = False
        self.log_end: Callable[[], int] = lambda: 0
        """Where the log ends; known once the store is open."""
        self._load(disk, path)

    # Loading and saving

    def _load(self, disk: Disk, path: str) -> None:
        text = load_text(disk, path, _is_readable)
        if text is None and disk.exists(path):
            log.warning("%s and its backup cannot be read: conditions are learned again", path)
        loaded = fastjson.load_as(text.encode(), FilterFile) if text else FilterFile()
        now_ms = self._clock.now_ms()
        for topic, filters in loaded.filter_data_by_topic.items():
            for group, data in filters.group_filter_data.items():
                if data.bloom_filter_data.bit_num != self._bloom.bits:
                    log.info("bitmaps have another size now: old conditions are forgotten")
                    self._topics.clear()
                    self._index()
                    return
                if not data.dead_time:  # no heartbeat came since the start
                    data.dead_time = max(data.born_time, now_ms - DEAD_BEFORE_START_MS)
                try:
                    made = condition(data.expression)
                except BadSql as error:
                    log.warning("condition of %s for %s is dropped: %s", group, topic, error)
                else:
                    table = self._topics.setdefault(topic, {})
                    table[group] = _Filter(data, made, is_saved=True)
        self._index()

    def _index(self) -> None:
        self._by_bytes = {
            topic.encode(): list(groups.values()) for topic, groups in self._topics.items()
        }

    async def save(self) -> None:
        """Write the table if it changed; conditions that were out of use for long are dropped."""
        self._clean()
        if not self._changed:
            return
        self._changed = False
        shown = [found for groups in self._topics.values() for found in groups.values()]
        for found in shown:
            found.data.dead = found.data.dead_time >= found.data.born_time
        shape = FilterFile(
            filter_data_by_topic={
                topic: TopicFilters(
                    group_filter_data={group: found.data for group, found in groups.items()},
                    topic=topic,
                )
                for topic, groups in self._topics.items()
            }
        )
        try:
            await self._file.save(fastjson.pretty(msgspec.to_builtins(shape)))
        except OSError:
            self._changed = True
            raise
        for found in shown:
            found.is_saved = True

    def _clean(self) -> None:
        oldest = self._clock.now_ms() - self._keep_ms
        for topic, groups in list(self._topics.items()):
            for group in [g for g, f in groups.items() if 0 < f.data.dead_time < oldest]:
                log.info("condition of %s for %s is dropped: nobody used it", group, topic)
                del groups[group]
                self._changed = True
            if not groups:
                del self._topics[topic]
        if self._changed:
            self._index()

    # Members

    def hear(self, group: str, subscriptions: Iterable[Subscription]) -> None:
        """Take over the SQL conditions of a group's heartbeat."""
        wanted = {one.topic: one for one in subscriptions if one.expression_type == SQL}
        for topic, one in wanted.items():
            self._register(group, topic, one)
        for topic, groups in self._topics.items():
            if topic not in wanted and group in groups:
                self._bury(groups[group])

    def leave(self, group: str) -> None:
        """The group has no members left: its conditions are out of use."""
        for groups in self._topics.values():
            if group in groups:
                self._bury(groups[group])

    def _bury(self, found: _Filter) -> None:
        if not found.data.dead_time:
            found.data.dead_time = self._clock.now_ms()
            self._changed = True

    def _register(self, group: str, topic: str, wanted: Subscription) -> None:
        known = self._topics.get(topic, {}).get(group)
        if known is not None and known.data.expression == wanted.sub_string:
            if known.data.dead_time or known.data.client_version < wanted.sub_version:
                known.data.dead_time = 0
                known.data.client_version = max(known.data.client_version, wanted.sub_version)
                self._changed = True
            return
        if known is not None and wanted.sub_version < known.data.client_version:
            return
        try:
            made = condition(wanted.sub_string)
        except BadSql:  # pulls are refused and say why
            if known is not None:
                del self._topics[topic][group]
                self._changed = True
                self._index()
            return
        data = FilterData(
            bloom_filter_data=BloomData(
                bit_num=self._bloom.bits, bit_pos=self._bloom.positions(f"{group}#{topic}")
            ),
            born_offset=self.log_end(),
            born_time=self._clock.now_ms(),
            client_version=wanted.sub_version,
            consumer_group=group,
            expression=wanted.sub_string,
            topic=topic,
        )
        self._topics.setdefault(topic, {})[group] = _Filter(data, made, is_saved=False)
        self._changed = True
        self._index()

    # Messages

    def marker(self, topic: bytes, properties: bytes) -> bytes | None:
        """The bitmap of a message; None if no group has a condition for its topic."""
        filters = self._by_bytes.get(topic)
        if not filters:
            return None
        bits = 0
        for found in filters:
            if not found.is_saved or found.condition.matches(properties):
                bits |= found.mask
        return bits.to_bytes(self._bloom.size, "little")

    def mark(self, group: str, topic: str, expression: str) -> Mark | None:
        """The bits of a group's condition; None if bitmaps do not have this condition."""
        found = self._topics.get(topic, {}).get(group)
        if found is None or found.data.expression != expression:
            return None
        data = found.data
        return Mark(found.mask, self._bloom.size, data.born_time, data.born_offset)


def _is_readable(text: str) -> bool:
    """Whether the file can be parsed. If not, conditions come back with the next heartbeats."""
    try:
        fastjson.load_as(text.encode(), FilterFile)
    except Exception as error:
        log.warning("consumerFilter.json cannot be read: %s", error)
        return False
    return True
