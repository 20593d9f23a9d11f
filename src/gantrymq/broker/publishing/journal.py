"""Writes notes to the log, and reads them again after a start.

The table of writers takes a note over in the turn in which the log does, so both have the same
order. A file beside the log makes reading old notes needless and remains when retention deletes
them; it never contains more than the log.
"""

import asyncio
import logging
from typing import Final

import msgspec

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.files import load_parsed
from gantrymq.base.offload import Offload
from gantrymq.base.saved import SavedFile
from gantrymq.broker.errors import BadRequest, Busy
from gantrymq.broker.publishing.notes import PROPERTIES, Note, encode, note_of
from gantrymq.broker.publishing.writer_table import WriterFile, WriterTable
from gantrymq.broker.stored_copies import HOPELESS
from gantrymq.model import PUBLISH_TOPIC
from gantrymq.protocol.record import decode_records
from gantrymq.store.append import Append, ReadResult, ReadStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

QUEUE: Final = 0
SAVE_SECONDS: Final = 10.0
READ_MESSAGES, READ_BYTES = 256, 4 * 1024 * 1024


class NoteJournal:
    """Writes notes and applies them to the table of writers."""

    def __init__(
        self,
        store: Store,
        writers: WriterTable,
        *,
        disk: Disk,
        offload: Offload,
        clock: WallClock,
        host: bytes,
        path: str,
    ) -> None:
        self._store, self._writers = store, writers
        self._disk, self._clock, self._host, self._path = disk, clock, host, path
        self._file = SavedFile(disk, offload, path)
        self._saved_position = 0

    async def write(self, note: Note) -> None:
        """Store a note; returns when it is in the log, not yet durable."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def stored(append: Append) -> None:
            if append.status.is_stored:
                self._writers.apply(
                    note, append.queue_offset, append.physical_offset, append.store_ms
                )
            if not done.done():
                done.set_result(None)

        append = Append(
            PUBLISH_TOPIC,
            QUEUE,
            encode(note),
            properties=PROPERTIES[type(note)],
            born_ms=self._clock.now_ms(),
            born_host=self._host,
            wait=False,
            reply=stored,
        )
        self._store.put(append)
        await done
        if append.status in HOPELESS:
            raise BadRequest(f"the epoch of {note.writer} has too many sends: {append.error}")
        if not append.status.is_stored:
            raise Busy(f"a note about epochs of {note.writer} cannot be stored: {append.error}")

    async def durable(self) -> None:
        """Return when everything stored so far is durable."""
        try:
            await self._store.sync()
        except OSError as error:
            raise Busy(f"the log cannot be made durable: {error}") from error

    # the file beside the log

    async def recover(self) -> None:
        """Load the file, then apply every later note of the log."""
        self._writers.load(load_writers(self._disk, self._path))
        low, high = (
            self._store.queues.min_offset(PUBLISH_TOPIC, 0),
            self._store.queues.max_offset(PUBLISH_TOPIC, 0),
        )
        at = min(max(self._writers.position, low), high)
        self._writers.position = self._saved_position = at
        while at < self._store.queues.max_offset(PUBLISH_TOPIC, QUEUE):
            outcome = self._store.reads.pull(PUBLISH_TOPIC, QUEUE, at, READ_MESSAGES, READ_BYTES)
            pulled = outcome if isinstance(outcome, ReadResult) else await outcome
            if pulled.status is ReadStatus.FOUND:
                for message in decode_records(pulled.body):
                    self._writers.apply(
                        note_of(message),
                        message.queue_offset,
                        message.physical_offset,
                        message.store_ms,
                    )
                await asyncio.sleep(0)
            elif pulled.next_offset <= at:
                break
            at = pulled.next_offset

    def needs_saving_below(self, position: int) -> bool:
        """Whether notes below a log offset are not in the file yet."""
        if self._writers.position == self._saved_position:
            return False
        queue = self._store.queues.get(PUBLISH_TOPIC, QUEUE)
        entry = queue.entry(self._saved_position) if queue is not None else None
        return entry is None or entry[0] < position

    async def save(self) -> None:
        """Write the table of writers to the file, after the log is durable."""
        if self._writers.position == self._saved_position:
            return
        self._writers.forget_idle(self._clock.now_ms())
        position = self._writers.position
        text = msgspec.json.encode(self._writers.saved()).decode()
        await self._store.sync()
        await self._file.save(text)
        self._saved_position = position


_decode = msgspec.json.Decoder(WriterFile).decode


def load_writers(disk: Disk, path: str) -> WriterFile:
    """The saved table of writers, or its backup; an empty one if there never was any."""
    found = load_parsed(disk, path, _decode)
    return WriterFile() if found is None else found
