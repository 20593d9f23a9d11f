"""All consume queues of a store, found by topic and queue id."""

import asyncio
import logging
import re
from itertools import islice

from gantrymq.base.disk import delete_tree
from gantrymq.base.errors import GantryError
from gantrymq.base.watermark import Watermark
from gantrymq.store.log.segment import OpenFiles
from gantrymq.store.queues.consumequeue import ENTRY_BYTES, ConsumeQueue
from gantrymq.store.queues.queueext import QueueExt

log = logging.getLogger(__name__)

LEGAL_TOPIC = re.compile(r"[%|a-zA-Z0-9_+-]{1,255}\Z")
"""RocketMQ's characters for names, and the + of its newer retry topics; none of them can leave
the store's directory, and a directory's name has 255 bytes at most."""

SLICE_SECONDS = 0.004
"""How long work on many queues holds the loop before it lets others run."""

TAIL_BYTES_MAX = 3200 * ENTRY_BYTES
"""A queue's entries in memory are written at the latest when they are this many bytes."""


class TopicNameError(GantryError):
    """A topic name that cannot name a directory."""


class QueueTable:
    """The consume queues by topic and queue id, and which of them have entries to write."""

    def __init__(self, files: OpenFiles, root: str, file_entries: int, ext_file_bytes: int) -> None:
        self._files = files
        self.directory, self._trash = f"{root}/consumequeue", f"{root}/trash"
        self._ext_directory = f"{root}/consumequeue_ext"
        self._file_entries, self._ext_file_bytes = file_entries, ext_file_bytes
        self.by_name: dict[tuple[str, int], ConsumeQueue] = {}
        self.by_bytes: dict[tuple[bytes, int], ConsumeQueue] = {}
        self.unwritten: dict[ConsumeQueue, None] = {}
        self._trashed = 0

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue; None if it never held an entry."""
        queue = self.by_name.get((topic, queue_id))
        return queue if queue is not None and queue.is_known else None

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first offset of a queue that can be read; 0 for an unknown queue."""
        queue = self.get(topic, queue_id)
        return queue.min_offset if queue is not None else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Behind the last visible offset of a queue; 0 for an unknown queue."""
        queue = self.get(topic, queue_id)
        return queue.max_offset if queue is not None else 0

    def arrivals(self, topic: str, queue_id: int) -> Watermark:
        """The watermark of a queue's visible end; also before its first message."""
        return self.at(topic, queue_id).end

    def topics(self) -> list[str]:
        """Every topic that holds messages, sorted."""
        return sorted({queue.topic for queue in self.known()})

    def ids(self, topic: str) -> list[int]:
        """The queue ids of a topic that hold messages, sorted."""
        return sorted(queue.queue_id for queue in self.known() if queue.topic == topic)

    def at(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue, created on demand; its files come with its first entries."""
        queue = self.by_name.get((topic, queue_id))
        if queue is None:
            if not LEGAL_TOPIC.match(topic):
                raise TopicNameError(f"the topic name {topic!r} is not legal")
            directory = f"{self.directory}/{topic}/{queue_id}"
            queue = ConsumeQueue(self._files, directory, topic, queue_id, self._file_entries)
            self.by_name[topic, queue_id] = queue
            self.by_bytes[queue.topic_bytes, queue_id] = queue
        return queue

    def ext_of(self, queue: ConsumeQueue) -> QueueExt:
        """The units of a queue, created on demand; their files come with the first unit."""
        if queue.ext is None:
            directory = f"{self._ext_directory}/{queue.topic}/{queue.queue_id}"
            queue.ext = QueueExt(self._files, directory, self._ext_file_bytes)
        return queue.ext

    def _load_ext(self) -> None:
        """Find the units of all queues; those of deleted queues are deleted."""
        disk = self._files.disk
        for topic in disk.list(self._ext_directory):
            for name in disk.list(f"{self._ext_directory}/{topic}"):
                queue = self.get(topic, int(name)) if name.isdigit() else None
                if queue is not None:
                    self.ext_of(queue).attach(queue.last_address())
                elif name.isdigit():
                    delete_tree(disk, f"{self._ext_directory}/{topic}/{name}")

    def known(self) -> list[ConsumeQueue]:
        """Every queue that ever held an entry."""
        return [queue for queue in self.by_name.values() if queue.is_known]

    def load(self, cut_at: int, *, clean: bool) -> None:
        """Find the queues on disk and keep the entries of records below `cut_at`."""
        disk = self._files.disk
        if disk.exists(self._trash):
            delete_tree(disk, self._trash)
        for topic in disk.list(self.directory):
            if not LEGAL_TOPIC.match(topic):
                log.warning("%s/%s is no queue of ours", self.directory, topic)
                continue
            for name in disk.list(f"{self.directory}/{topic}"):
                if name.isdigit():
                    self.at(topic, int(name)).load(cut_at, clean=clean)
        self._load_ext()

    def trim(self, log_min: int) -> None:
        """Make every queue begin with its first record that is still in the log."""
        for queue in self.known():
            queue.trim(log_min)

    async def write_tails(self, queues_max: int | None = None) -> None:
        """Write entries from memory to the files, in slices that let the loop run in between; of
        so many queues at most, those first that have waited longest.

        A queue whose write fails is tried again next time, and the error is raised.
        """
        loop = asyncio.get_running_loop()
        slice_end = loop.time() + SLICE_SECONDS
        for queue in list(islice(self.unwritten, queues_max)):
            if queue in self.unwritten:
                queue.write_tail()
                del self.unwritten[queue]
            if loop.time() > slice_end:
                await asyncio.sleep(0)
                slice_end = loop.time() + SLICE_SECONDS

    def delete_topic(self, topic: str) -> list[str]:
        """Remove a topic's queues; returns the renamed directories, which the caller deletes."""
        for key in [key for key in self.by_name if key[0] == topic]:
            queue = self.by_name.pop(key)
            del self.by_bytes[queue.topic_bytes, queue.queue_id]
            self.unwritten.pop(queue, None)
        # Units first: entries can be read without them.
        directories = [f"{self._ext_directory}/{topic}", f"{self.directory}/{topic}"]
        return [self._put_in_trash(directory) for directory in directories if self._has(directory)]

    def _has(self, directory: str) -> bool:
        return self._files.disk.exists(directory)

    def _put_in_trash(self, directory: str) -> str:
        disk = self._files.disk
        self._files.drop_below(directory)
        # One rename takes all of it away at once, so that no crash leaves half a queue. The next
        # checkpoint makes it durable; should it be undone before, the queue is simply there again.
        disk.make_dirs(self._trash)
        self._trashed += 1
        folder = f"{self._trash}/{self._trashed}"
        disk.rename(directory, folder)
        return folder
