"""Messages that threads submit: one crossing to the event loop takes all that wait for it."""

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from gantrymq.client.core.errors import WindowFull
from gantrymq.client.produce.producer import Producer
from gantrymq.client.sending.pending_send import Selector
from gantrymq.model import Message, Queue, SendResult
from gantrymq.sync.portal import Portal

Submitted = concurrent.futures.Future[SendResult]


class _Waiting(NamedTuple):
    """A message that has not been handed to its producer."""

    message: Message
    queue: Queue | None
    selector: Selector | None
    future: Submitted


class Submissions:
    """What threads have submitted to one producer, in their order."""

    def __init__(self, target: Producer, portal: Callable[[], Portal]) -> None:
        self._target, self._portal = target, portal
        self._room = threading.BoundedSemaphore(target.options.window_messages)
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._crossing = False
        """Whether the loop is told already that something waits."""
        self._taken: deque[_Waiting] = deque()
        """On the loop, in line for the producer's window."""
        self._for_room: asyncio.Task[None] | None = None

    def add(self, message: Message, queue: Queue | None, selector: Selector | None) -> Submitted:
        """Called on any thread; waits while too many are under way."""
        self._room.acquire()
        future: Submitted = concurrent.futures.Future()
        future.add_done_callback(lambda _: self._room.release())
        with self._lock:
            self._waiting.append(_Waiting(message, queue, selector, future))
            is_first, self._crossing = not self._crossing, True
        if is_first:
            self._portal().post(self._take)
        return future

    def _take(self) -> None:
        with self._lock:
            self._crossing = False
            self._taken += self._waiting
            self._waiting.clear()
        if self._for_room is None:
            self._submit_taken()

    def _submit_taken(self) -> None:
        while self._taken:
            message, queue, selector, future = self._taken[0]
            try:
                if future.cancelled():
                    future.set_running_or_notify_cancel()
                else:
                    sent = self._target.submit(message, queue=queue, selector=selector)
                    sent.add_done_callback(partial(_hand_over, future))
            except WindowFull:  # of bytes, or others use the same producer
                self._for_room = asyncio.ensure_future(self._wait_for_room())
                return
            except Exception as error:
                _fail(future, error)
            self._taken.popleft()

    async def _wait_for_room(self) -> None:
        try:
            await self._target.room()
        except Exception as error:
            while self._taken:
                _fail(self._taken.popleft().future, error)
        self._for_room = None
        self._submit_taken()


def _hand_over(future: Submitted, sent: asyncio.Future[SendResult]) -> None:
    """Give the caller what the loop has got."""
    if sent.cancelled():
        future.cancel()
        future.set_running_or_notify_cancel()
    elif (error := sent.exception()) is not None:
        _fail(future, error)
    elif future.set_running_or_notify_cancel():
        future.set_result(sent.result())


def _fail(future: Submitted, error: BaseException) -> None:
    if future.set_running_or_notify_cancel():
        future.set_exception(error)
