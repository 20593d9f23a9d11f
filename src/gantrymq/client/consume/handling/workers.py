"""Workers: a fixed number of tasks that take messages, call the handler and finish them."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from gantrymq.base.background import Background
from gantrymq.base.plurals import counted
from gantrymq.client.consume.queues.ready_queues import ReadyQueues, ReadyQueuesClosed
from gantrymq.client.messages.consume_status import ConsumeStatus, finish_by
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.messages.failures import failure_of

log = logging.getLogger(__name__)


class Work:
    """A handler, and what its result means for the messages it was given."""

    def __init__(self, function: Callable[[Any], Any], batch_max: int, *, as_list: bool) -> None:
        self._function, self._as_list = function, as_list
        self.batch_max = batch_max
        self._is_async = inspect.iscoroutinefunction(function)

    async def run(self, batch: list[Delivery]) -> None:
        """Call the handler: None acks, an exception retries, a status decides, all else retries."""
        given = batch if self._as_list else batch[0]
        try:
            result = self._function(given)
            if self._is_async or (result is not None and inspect.isawaitable(result)):
                result = await result
            if result is not None and not isinstance(result, ConsumeStatus):
                raise TypeError(
                    f"handler returned {result!r}; return None to acknowledge, raise to retry, or "
                    "return a ConsumeStatus"
                )
        except (Exception, asyncio.CancelledError) as error:
            if _is_ours(error):
                raise
            log.exception("handler failed on %s", ", ".join(map(repr, batch)))
            failure = failure_of(error)
            for message in batch:
                if message.finished is None:
                    message.failure = failure
                    await message.retry()
        else:
            if result is None or result is ConsumeStatus.SUCCESS:
                for message in batch:
                    if message.finished is None:
                        await message.ack()
            else:
                for message in batch:
                    if message.finished is None:
                        await finish_by(result, message)


def _is_ours(error: BaseException) -> bool:
    """Whether this task was cancelled, rather than something that the handler awaited."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


class Workers:
    """The tasks that run a consumer's handler; none until it has one."""

    def __init__(self, ready: ReadyQueues) -> None:
        self._ready = ready
        self._background = Background("a handler")
        self._tasks: list[asyncio.Task[None]] = []
        self.closers: set[asyncio.Task[Any]] = set()
        """Tasks whose handler, on a thread of its own, closes the consumer."""

    def start(self, work: Work, count: int) -> None:
        """Run the handler with up to `count` calls at a time."""
        self._tasks = [self._background.spawn(self._loop(work)) for _ in range(count)]

    async def _loop(self, work: Work) -> None:
        ready = self._ready
        while True:
            try:
                batch = await ready.next(work.batch_max)
            except ReadyQueuesClosed:
                return
            try:
                await work.run(batch)
            except Exception:
                # ack, retry or dead failed, for instance because the consumer was closed.
                log.exception("finishing %s failed", counted(len(batch), "message"))

    async def stop(self, grace: float) -> None:
        """Wait for running handlers; cancel those that still run after `grace` seconds."""
        # A handler may close its own consumer: do not wait for it and do not cancel it, as closing
        # the whole background would.
        closers = {asyncio.current_task(), *self.closers}
        others = [task for task in self._tasks if task not in closers]
        if not others:
            return
        _, late = await asyncio.wait(others, timeout=grace)
        for task in late:
            task.cancel()
        if late:
            log.warning("%s still running at the end: cancelled", counted(len(late), "handler"))
            await asyncio.wait(late)
