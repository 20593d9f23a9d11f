"""The way into the log: all appends of one turn of the event loop are written by one call.

How it goes. `put` only stages an append. At the end of the turn `_turn` takes everything that is
staged, checks sizes, gives each message its place in its queue, encodes all of it into one buffer
and hands it to the commit log. What is written is then dispatched (queues, index) and answered.

Why so. A system call for each message would cost more than everything else that is done for it.
With one call a turn the cost falls as the load rises, and requests that arrive together become
durable together (`flush`).

What always holds:

- Every append is answered exactly once, and never inside `put`.
- Records lie in the log in the order in which they were put, and queue offsets have no holes: a
  write that fails gives the places back (`_take_back`), answers exactly its own appends and moves
  nothing.
- Readers see only what has been dispatched, and nothing is dispatched before what was written
  before it. With SYNC_FLUSH dispatching waits for the flushed mark, so a power cut cannot take
  back what somebody has read; with SYNC_MASTER it waits for a slave, too, so the loss of this
  machine cannot either (`pending_writes`).
- A file that is full is left only for one that is allocated already (`make_spare`). While it is
  being made appends are held, and refused when that takes too long.
"""

import asyncio
import errno
import logging
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from gantrymq.base.background import Background
from gantrymq.base.plurals import counted
from gantrymq.kernel import (
    ItemSizes,
    RecordItem,
    SendRun,
    encode_records,
    measure_items,
)
from gantrymq.protocol.record import (
    BORN_V6,
    PROPERTIES_BYTES_MAX,
    STORE_V6,
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    record_size,
)
from gantrymq.store.append import Append, BatchItem, PutStatus, Staged, count_of
from gantrymq.store.config import StoreConfig
from gantrymq.store.log.flush import Flusher
from gantrymq.store.queues.queue_table import TopicNameError
from gantrymq.store.shared import StoreFiles, StorePorts
from gantrymq.store.writing.dispatch import Dispatcher
from gantrymq.store.writing.pending_writes import PendingWrites
from gantrymq.store.writing.write_counts import WriteCounts

log = logging.getLogger(__name__)

TURN_BYTES_MAX = 4 << 20
"""How many bytes one turn writes before it lets others run."""

LOOK_SECONDS = 0.01
"""How often appends that wait for the next file are checked for their time limit."""
SHED_SECONDS = 0.05
"""Appends that come in so soon after a slow write count as having waited behind it."""
BUSY = "broker busy, start flow control for a while"


class Writer:
    """Stages appends, writes them in batches, dispatches them, answers them."""

    def __init__(
        self,
        config: StoreConfig,
        ports: StorePorts,
        files: StoreFiles,
        dispatcher: Dispatcher,
        flusher: Flusher,
        *,
        store_host: bytes,
        refusal: Callable[[], str | None],
    ) -> None:
        self._config, self._log, self._queues = config, files.log, files.queues
        self._dispatcher, self._flusher = dispatcher, flusher
        self._clock, self._offload = ports.clock, ports.offload
        self._store_host, self._refusal = store_host, refusal
        bits = STORE_V6 if len(store_host) == 20 else 0
        self._fixed_bytes = record_size(0, 0, 0, bits), record_size(0, 0, 0, bits | BORN_V6)
        """Of a version 1 record without its variable parts, by whether its sender has IPv6."""
        self.written = WriteCounts()
        self.pending = PendingWrites(
            config, flusher, self.written, dispatch=dispatcher.feed_written, answer=self._answer
        )
        """What is written and waits for the flush or for a copy."""
        self.take_settings()
        self._last_ms = dispatcher.last_store_ms
        self._staged: list[Staged] = []
        self._scheduled = False
        self._held = False
        """Whether staged appends wait for a new file."""
        self._arrivals: list[float] = []
        """Since when each staged append waits; kept only while they are held."""
        self._stall, self._shed_until = "", 0.0
        self._background = Background("the writer of the log")
        self._making: asyncio.Task[None] | None = None
        self.on_failure: Callable[[str], None] = _nothing
        """Called with the reason when the disk refuses a write or a file."""
        self._loop = asyncio.get_running_loop()

    def take_settings(self) -> None:
        """Read the settings once instead of for every message; called again when they change."""
        self._record_bytes_max = self._config.record_bytes_max
        self._body_bytes_max = self._config.max_message_bytes
        self.pending.take_settings()

    def put(self, append: Staged) -> None:
        """Accept an append; its `reply` is called later, once."""
        self._staged.append(append)
        if self._held:
            self._arrivals.append(self._loop.time())
        elif not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        if not self._held:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Write everything that is staged, file by file."""
        self._scheduled = False
        if self._held:
            return
        staged, self._staged = self._staged, []
        reason = self._refusal()
        if reason is not None:
            self._answer(staged, PutStatus.SERVICE_NOT_AVAILABLE, reason)
            return
        if self._shed_until and self._loop.time() < self._shed_until:
            self._answer(staged, PutStatus.PAGECACHE_BUSY, self._stall)
            return
        fitting: list[Staged] = []
        total, room = 0, self._log.room
        for number, append in enumerate(staged):
            if isinstance(append, Append) and not append.size and not self._admit(append):
                continue
            if total > TURN_BYTES_MAX:
                self._write(fitting)
                self._staged = staged[number:] + self._staged
                self._schedule()
                return
            while total + append.size > room:
                front = append.split(room - total) if isinstance(append, SendRun) else None
                if front is not None:
                    fitting.append(front)
                self._write(fitting)
                fitting, total = [], 0
                if append.size > self._log.room and not self._roll(staged[number:]):
                    return
                room = self._log.room
            fitting.append(append)
            total += append.size
        self._write(fitting)

    def _admit(self, append: Append) -> bool:
        """Compute the size; refuse an append that can never be stored."""
        try:
            queue = self._queues.at(append.topic, append.queue_id)
        except TopicNameError as error:
            return self._reject(append, PutStatus.MESSAGE_ILLEGAL, str(error))
        fixed = self._fixed_bytes[len(append.born_host) == 20] + queue.topic_extra_bytes
        if append.batch is None:
            fault = self._fault(append.body, append.properties)
            total = fixed + len(append.body) + len(append.properties)
        else:
            sizes = measure_items(append.batch)
            fault = self._fault_in(append.batch) if self._is_odd(sizes) else None
            total = fixed * len(append.batch) + sizes.bytes
        if fault is None and not 0 < total <= self._record_bytes_max:
            text = f"a record of {total} bytes; {self._record_bytes_max} is the most"
            fault = PutStatus.MESSAGE_ILLEGAL, text
        if fault is not None:
            return self._reject(append, *fault)
        append.size = total
        return True

    def _fault(self, body: bytes, properties: bytes) -> tuple[PutStatus, str] | None:
        """Why one message can never be stored; None if it can."""
        if len(properties) > PROPERTIES_BYTES_MAX:
            text = f"properties of {len(properties)} bytes; {PROPERTIES_BYTES_MAX} is the most"
            return PutStatus.PROPERTIES_SIZE_EXCEEDED, text
        if b"\0" in properties:
            # Recovery recognizes a torn record by its zeros.
            return PutStatus.MESSAGE_ILLEGAL, "a zero byte in properties"
        if len(body) > self._body_bytes_max:
            text = f"a body of {counted(len(body), 'byte')}; {self._body_bytes_max} is the most"
            return PutStatus.MESSAGE_ILLEGAL, text
        return None

    def _is_odd(self, sizes: ItemSizes) -> bool:
        """Whether one message of a batch can never be stored."""
        return (
            sizes.has_zero
            or sizes.properties_max > PROPERTIES_BYTES_MAX
            or sizes.body_max > self._body_bytes_max
        )

    def _fault_in(self, batch: Sequence[BatchItem]) -> tuple[PutStatus, str] | None:
        faults = (self._fault(body, properties) for _, body, properties in batch)
        return next(filter(None, faults), None)

    def _reject(self, append: Append, status: PutStatus, text: str) -> bool:
        self._answer([append], status, text)
        return False

    # Writing

    def _write(self, appends: list[Staged]) -> None:
        if not appends:
            return
        base = self._log.end
        store_ms = max(self._last_ms, self._clock.now_ms())
        items = self._items(appends)
        try:
            data, sizes = encode_records(items, base, store_ms, self._store_host)
        except (OverflowError, struct.error):
            self._take_back(appends)
            self._write(self._without_misfits(appends))
            return
        began = self._loop.time()
        try:
            self._log.append(data)
        except OSError as error:
            self._take_back(appends)
            self._answer(appends, _status_of(error), f"the log cannot be written: {error}")
            self.on_failure(f"the log cannot be written: {error}")
            return
        if (self._loop.time() - began) * 1000 >= self._config.append_busy_ms:
            self._shed(self._loop.time() - began)
        self._last_ms = store_ms
        count = self._fill(appends, sizes, base, store_ms)
        self.written.count += count
        self.written.bytes += len(data)
        if self.pending.wait:
            self.pending.add(appends, data, base, began)
        else:
            self.pending.copyable.advance(self._log.end)
            self.written.took(count, self._loop.time() - began)
            self._dispatcher.feed_written(data, base)
            self._answer(appends, PutStatus.PUT_OK)

    def _items(self, appends: list[Staged]) -> list[RecordItem | SendRun]:
        """Give each message its queue offset."""
        items: list[RecordItem | SendRun] = []
        by_name = self._queues.by_name
        for append in appends:
            if isinstance(append, SendRun):
                append.place(by_name, self._queues.at)
                items.append(append)
                continue
            key = append.topic, append.queue_id
            queue = by_name.get(key) or self._queues.at(*key)
            kind = append.sys_flag & TRANSACTION_MASK
            counts = 1 if kind in (0, TRANSACTION_COMMIT) else 0
            offset = append.queue_offset = queue.next if counts else 0
            single = ((append.flag, append.body, append.properties),)
            batch: Sequence[tuple[int, bytes, bytes]] = append.batch or single
            for flag, body, properties in batch:
                items.append(
                    (
                        queue.topic_bytes,
                        append.queue_id,
                        offset,
                        flag,
                        append.sys_flag,
                        append.born_ms,
                        append.born_host,
                        append.reconsume_times,
                        append.prepared_offset,
                        body,
                        properties,
                    )
                )
                offset += counts
            if counts:
                queue.next = offset
        return items

    def _without_misfits(self, appends: list[Staged]) -> list[Staged]:
        """Refuse appends with a number too large for its field, found by encoding each alone."""
        fitting: list[Staged] = []
        for append in appends:
            if isinstance(append, SendRun):  # its numbers have been looked at
                fitting.append(append)
                continue
            items = self._items([append])
            self._take_back([append])
            try:
                encode_records(items, 0, 0, self._store_host)
            except (OverflowError, struct.error) as error:
                self._reject(append, PutStatus.MESSAGE_ILLEGAL, f"a field is too large: {error}")
            else:
                fitting.append(append)
        return fitting

    def _take_back(self, appends: list[Staged]) -> None:
        """Undo `_items`: the next appends get these queue offsets."""
        for append in reversed(appends):
            if isinstance(append, SendRun):
                append.take_back()
                continue
            if append.sys_flag & TRANSACTION_MASK in (0, TRANSACTION_COMMIT):
                self._queues.at(append.topic, append.queue_id).next = append.queue_offset
            append.queue_offset = -1

    def _fill(self, appends: list[Staged], sizes: list[int], base: int, store_ms: int) -> int:
        """Tell appends where they lie; runs know it. Returns how many records they are."""
        at, number, count = base, 0, 0
        for append in appends:
            if isinstance(append, SendRun):
                at += append.size
                number += 1
                count += len(append) - 1
                continue
            append.store_ms = store_ms
            append.physical_offset = at
            if append.batch is None:
                at += append.size
                number += 1
                continue
            ends = accumulate(sizes[number : number + len(append.batch)], initial=at)
            *append.physical_offsets, at = ends
            number += len(append.batch)
        return number + count

    # Files

    def _roll(self, rest: list[Staged]) -> bool:
        """Continue in the next file; False if `rest` waits for it or was refused."""
        if self._log.spare is None:
            self._hold(rest)
            self.make_spare()
            return False
        try:
            self._log.roll()
        except OSError as error:
            self._answer(rest, _status_of(error), f"the log file cannot be closed: {error}")
            return False
        self.make_spare()
        return True

    # Flow control

    def _shed(self, seconds: float) -> None:
        """A write took too long: refuse for a moment the appends that came in meanwhile."""
        self._shed_until = self._loop.time() + SHED_SECONDS
        self._stall = (
            f"[PCBUSY_CLEAN_QUEUE]{BUSY}: writing to the log took {seconds * 1000:.0f} ms, "
            f"osPageCacheBusyTimeOutMills is {self._config.append_busy_ms}"
        )
        log.warning("%s", self._stall)

    def _hold(self, rest: list[Staged]) -> None:
        """Let appends wait for the next file, for a limited time."""
        self._held = True
        self._staged = rest + self._staged
        self._arrivals = [self._loop.time()] * len(self._staged)
        self._loop.call_later(LOOK_SECONDS, self._look_at_held)

    def _look_at_held(self) -> None:
        """Refuse appends that waited too long; with a limit of 0 all may wait."""
        if not self._held:
            return
        waited_max = self._config.queue_wait_max_ms / 1000 or float("inf")
        now = self._loop.time()
        late = bisect_right(self._arrivals, now - waited_max)
        if late:
            count, waited_ms = count_of(self._staged), (now - self._arrivals[0]) * 1000
            refused, self._staged = self._staged[:late], self._staged[late:]
            del self._arrivals[:late]
            text = (
                f"[TIMEOUT_CLEAN_QUEUE]{BUSY}, period in queue: {waited_ms:.0f}ms, size of queue: "
                f"{count}: the next log file is still being made, waitTimeMillsInSendQueue is "
                f"{self._config.queue_wait_max_ms}"
            )
            self._answer(refused, PutStatus.PAGECACHE_BUSY, text)
        self._loop.call_later(LOOK_SECONDS, self._look_at_held)

    def resume(self) -> None:
        """Begin to write behind a log that others have written: a new leader of a raft group.

        Everything in the log is dispatched, so each queue goes on behind its last entry.
        """
        self._last_ms = max(self._last_ms, self._dispatcher.last_store_ms)
        for queue in self._queues.by_name.values():
            queue.next = queue.stop
        self.make_spare()

    async def suspend(self, reason: str) -> None:
        """Write no more, and let nobody wait: this broker does not lead its raft group any more."""
        self.pending.abandon(reason)
        if self._making is not None:
            await asyncio.wait([self._making])

    def make_spare(self) -> None:
        """Start making the next file before it is needed."""
        if self._making is None and self._log.spare is None:
            self._making = self._background.spawn(self._make())

    async def _make(self) -> None:
        failure: OSError | None = None
        try:
            self._log.spare = await self._offload.run(self._log.make_spare, self._log.limit)
        except OSError as error:
            log.warning("the next log file cannot be made: %s", error)
            failure = error
            self.on_failure(f"the next log file cannot be made: {error}")
        self._making = None
        if self._held:
            self._held = False
            self._arrivals.clear()
            if failure is not None:
                staged, self._staged = self._staged, []
                text = f"the next log file cannot be made: {failure}"
                self._answer(staged, PutStatus.CREATE_FILE_FAILED, text)
            elif not self._scheduled:
                self._schedule()

    # Answering

    def _answer(self, appends: list[Staged], status: PutStatus, error: str = "") -> None:
        if not status.is_stored:
            self.written.failed += count_of(appends)
        for append in appends:
            append.status, append.error = status, error
            try:
                append.reply(append)  # type: ignore[arg-type]
            except Exception:  # one failing callback must not stop the others
                log.exception("the reply to an append failed")

    async def drain(self) -> None:
        """Write all accepted appends, and wait for the next file if they need it."""
        while self._staged or self._making is not None:
            if self._making is not None:
                await asyncio.wait([self._making])
            else:
                self._turn()


def _nothing(reason: str) -> None:
    """A broker without a raft group: nobody could go on in its place."""


def _status_of(error: OSError) -> PutStatus:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return PutStatus.SERVICE_NOT_AVAILABLE if full else PutStatus.UNKNOWN_ERROR
