"""`via=store`: the rows of one or several stores, alone or together with their brokers.

With a name server, what is in files comes from files and what is not there yet from the broker:
offsets mean the same in both, so there is neither a gap nor a repeat between them.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from gantrymq.base.errors import ConfigError
from gantrymq.kernel import FILLER_SIZE
from gantrymq.model import Queue, is_system_topic
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets
from gantrymq.spark.closeable import Closeable
from gantrymq.spark.files.store_rows import RecordFilter, StoreRows
from gantrymq.spark.options.columns import nearest
from gantrymq.spark.options.source_options import NEVER, REQUIRE, SourceOptions
from gantrymq.spark.records.losses import on_loss
from gantrymq.spark.records.row_filter import RowFilter
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.records.survey import SAMPLE_MESSAGES, Sample, match_names
from gantrymq.store.files.folder import StoreFolder

_NAMED = re.compile(r"([^=/]+)=(.+)\Z")
NAMES_SHOWN: Final = 8


class StoredRows(Closeable):
    """The rows of stores, one store a broker; no broker is asked."""

    def __init__(self, options: SourceOptions, stores: Mapping[str, StoreRows]) -> None:
        self._options, self.stores = options, stores

    def close(self) -> None:
        for store in self.stores.values():
            store.close()

    def bounds(self) -> tuple[QueueOffsets, QueueOffsets]:
        lows: QueueOffsets = {}
        highs: QueueOffsets = {}
        for store in self.stores.values():
            store.refresh()
        topics = self._topics()
        for store in self.stores.values():
            queues = [queue for topic in topics for queue in store.queues(topic)]
            some_lows, some_highs = store.bounds_of(
                [queue for queue in queues if self._options.queues.reads(queue)]
            )
            lows |= some_lows
            highs |= some_highs
        return lows, highs

    def _topics(self) -> Sequence[str]:
        """The chosen topics; a topic that no store has is an error."""
        known = sorted({name for store in self.stores.values() for name in store.folder.topics()})
        queues = self._options.queues
        if queues.pattern is not None:
            return match_names(known, queues.pattern)
        for topic in queues.topics:
            if topic not in known:
                folders = ", ".join(store.folder.directory for store in self.stores.values())
                raise ConfigError(f"there is no topic {topic} in {folders}{_instead(topic, known)}")
        return queues.topics

    def offsets_at(self, times: Mapping[Queue, int]) -> QueueOffsets:
        return {queue: self._of(queue).offset_at(queue, ms) for queue, ms in times.items()}

    def samples(self, starts: QueueOffsets) -> dict[Queue, Sample]:
        found: dict[Queue, Sample] = {}
        for queue, start in starts.items():
            folder = self._of(queue).folder
            entries = folder.queue(queue.topic, queue.queue_id).read(start, start + SAMPLE_MESSAGES)
            real = entries[(entries["size"] > 0) & (entries["size"] != FILLER_SIZE)]
            if real.size:
                store_ms = folder.log.store_ms(int(real["position"][0]))
                found[queue] = Sample(float(np.mean(real["size"])), store_ms)
        return found

    def committed(self, queues: Sequence[Queue]) -> QueueOffsets:
        raise ConfigError("a group's progress is the broker's to tell: set nameServer as well")

    def proven(self, queues: Collection[Queue]) -> set[Queue]:
        return set(queues)

    def batches(self, wanted: OffsetRange, columns: Sequence[str]) -> Iterator[Any]:
        store, sieve = self._of(wanted.queue), RowFilter(self._options, columns)
        for batch in store.batches(wanted, sieve.needed, on_loss(self._options)):
            kept = sieve.sift(batch)
            if len(kept):
                yield kept

    def _of(self, queue: Queue) -> StoreRows:
        store = self.stores.get(queue.broker_name)
        if store is None:
            raise ConfigError(
                f"storePath names no store of {queue.broker_name}: write it as "
                f"{queue.broker_name}=/path, and several with commas between"
            )
        return store


class MixedRows:
    """Reads from files what they hold, and the rest from brokers."""

    def __init__(self, files: StoredRows, broker: Rows) -> None:
        self._files, self._broker = files, broker

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.close()
        self._broker.__exit__(kind, error, trace)

    def close(self) -> None:
        self._files.close()
        self._broker.close()

    def bounds(self) -> tuple[QueueOffsets, QueueOffsets]:
        """The bounds that brokers report; ConfigError if a store reaches beyond its broker."""
        ends = self._ends()
        lows, highs = self._broker.bounds()
        for queue, end in ends.items():
            if queue in highs and end > highs[queue]:
                folder = self._files.stores[queue.broker_name].folder.directory
                raise ConfigError(
                    f"{folder} is not the store of {queue.broker_name}: {queue.text} ends at "
                    f"{end} there, and at {highs[queue]} for the broker. See storePath"
                )
        return lows, highs

    def _ends(self) -> QueueOffsets:
        try:
            return self._files.bounds()[1]
        except ConfigError:  # a topic that no store has a file of yet
            return {}

    def offsets_at(self, times: Mapping[Queue, int]) -> QueueOffsets:
        return self._broker.offsets_at(times)

    def samples(self, starts: QueueOffsets) -> dict[Queue, Sample]:
        return self._broker.samples(starts)

    def committed(self, queues: Sequence[Queue]) -> QueueOffsets:
        return self._broker.committed(queues)

    def proven(self, queues: Collection[Queue]) -> set[Queue]:
        return self._broker.proven(queues)

    def batches(self, wanted: OffsetRange, columns: Sequence[str]) -> Iterator[Any]:
        queue, store = wanted.queue, self._files.stores.get(wanted.queue.broker_name)
        low = high = wanted.start
        if store is not None:
            lows, highs = store.bounds_of([queue])
            low, high = max(wanted.start, lows[queue]), min(wanted.end, highs[queue])
        if low >= high:
            yield from self._broker.batches(wanted, columns)
            return
        if wanted.start < low:  # expired: the broker says so, or has it elsewhere
            yield from self._broker.batches(
                OffsetRange(queue, wanted.start, low, wanted.is_new), columns
            )
        yield from self._files.batches(OffsetRange(queue, low, high), columns)
        if high < wanted.end:
            yield from self._broker.batches(OffsetRange(queue, high, wanted.end), columns)


def stored_rows(options: SourceOptions, broker: Callable[[SourceOptions], Rows]) -> Rows:
    """The rows that the options with `via=store` name, as seen by this process."""
    if options.files.access == NEVER:
        return broker(options)
    namesrv, messages = options.cluster.namesrv, options.messages
    folders = parse_store_path(options.files.path or "")
    missing = [folder for _, folder in folders if not Path(folder, "commitlog").is_dir()]
    if missing and (not namesrv or options.files.access == REQUIRE):
        instead = "" if namesrv else ", or set nameServer so that its broker is asked"
        raise ConfigError(
            f"{missing[0]} is no store that can be seen from here: name the folder that holds "
            f"commitlog and consumequeue, on a disk that every executor sees{instead}"
        )
    stores: dict[str, StoreRows] = {}
    wanted = RecordFilter(messages.tag_names, tuple(sorted(messages.keys)), messages.sql)
    for name, directory in folders:
        if directory in missing:
            continue
        folder = StoreFolder(directory)
        own = name or folder.broker_name()
        if own is None:
            raise ConfigError(
                f"{directory} does not tell its broker's name: write storePath as "
                f"broker-a={directory}"
            )
        if own in stores:
            raise ConfigError(
                f"storePath names two stores of {own}: {stores[own].folder.directory} and "
                f"{directory}. Read them apart, or name the second one's own broker in front of it"
            )
        stores[own] = StoreRows(folder, own, wanted, strict=options.fails_on_loss)
    files = StoredRows(options, stores)
    return MixedRows(files, broker(options)) if namesrv else files


def parse_store_path(text: str) -> list[tuple[str | None, str]]:
    """`/dir`, or `broker-a=/dir,broker-b=/other`: broker names, if given, and folders."""
    found: list[tuple[str | None, str]] = []
    for word in (word.strip() for word in text.split(",")):
        if word:
            match = _NAMED.match(word)
            found.append((match[1].strip(), match[2].strip()) if match else (None, word))
    if not found:
        raise ConfigError(
            "storePath is empty: the broker's store folder, or several by broker "
            "name, broker-a=/path,broker-b=/path"
        )
    if len({folder.rstrip("/") for _, folder in found}) < len(found):
        raise ConfigError(f"storePath names a folder twice: {text}")
    names = [name for name, _ in found if name is not None]
    if len(set(names)) < len(names):
        raise ConfigError(f"storePath names a broker twice: {text}")
    return found


def _instead(topic: str, known: Sequence[str]) -> str:
    near = nearest(topic, known)
    own = [name for name in known if not is_system_topic(name)]
    return near or (f"; it has {', '.join(own[:NAMES_SHOWN])}" if own else "; it has none")
