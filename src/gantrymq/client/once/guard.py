"""The guard around a handler: acknowledges work that is already done without calling it.

There are two ways. In the user's own transaction the `done` row commits together with the handler's
writes: effectively once, whatever crashes when. With claims the row is written before and after the
work: if a member dies after the work and before the `done` mark, the work is done again.
"""

import asyncio
import inspect
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Generic, Literal, TypeVar, cast, overload

from gantrymq.base import arguments
from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.messages.consume_status import ConsumeStatus, finish_by, is_done
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.once.keys import KeyOf, by_keys, row_key
from gantrymq.client.once.store import ClaimStore, StoreUnusable, TransactionStore, Tx, WorkState

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 30.0
KEEP_SECONDS: Final = 7 * 24 * 3600.0
"""Longer than brokers keep messages (3 days): what can come again is still known."""
STORE_SECONDS_MAX: Final = 10.0
BUSY_PAUSE_SECONDS: Final = (0.1, 1.0)
"""How often a claim of somebody else is looked at: first soon, then slower."""
DONE_TRIES: Final = 3
DONE_PAUSE_SECONDS: Final = 1.0
PURGE_SECONDS: Final = 600.0
PURGE_ROWS: Final = 1000
UNDONE: Final = ("retry", "dead")
"""Verbs by which a handler says itself that the work was not done."""

T = TypeVar("T")


class _RolledBack(Exception):
    """Rolls back a transaction whose handler did not do the work."""

    def __init__(self, value: object) -> None:
        self.value = value


class Once(Generic[Tx]):
    """Makes one consumer's handler run effectively once for each piece of work.

    `key` names the work (default: topic, tag and keys of the message). With `transaction=True` the
    handler gets the open transaction as second argument, whose type is the store's. With
    `at_most_once=True` the work is marked before it is done: it may be lost, never repeated.
    """

    @overload
    def __init__(
        self: "Once[None]",
        store: ClaimStore,
        *,
        key: KeyOf = by_keys,
        transaction: Literal[False] = False,
        at_most_once: bool = False,
        lease: float = LEASE_SECONDS,
        keep: float = KEEP_SECONDS,
    ) -> None: ...

    @overload
    def __init__(
        self,
        store: TransactionStore[Tx],
        *,
        key: KeyOf = by_keys,
        transaction: bool,
        at_most_once: bool = False,
        lease: float = LEASE_SECONDS,
        keep: float = KEEP_SECONDS,
    ) -> None: ...

    def __init__(
        self,
        store: ClaimStore,
        *,
        key: KeyOf = by_keys,
        transaction: bool = False,
        at_most_once: bool = False,
        lease: float = LEASE_SECONDS,
        keep: float = KEEP_SECONDS,
    ) -> None:
        if transaction and not hasattr(store, "transaction"):
            raise ConsumerMisused(f"{type(store).__name__} has no transactions: use claims")
        if transaction and at_most_once:
            raise ConsumerMisused("a transaction is effectively once, not at most once")
        arguments.seconds("lease", lease, more_than_none=True)
        arguments.seconds("keep", keep, more_than_none=True)
        arguments.yes_or_no("transaction", transaction)
        arguments.yes_or_no("at_most_once", at_most_once)
        self.store, self.transaction, self.at_most_once = store, transaction, at_most_once
        self.transaction_kind: type | None = (
            getattr(store, "transaction_kind", None) if transaction else None
        )
        """The class by which a handler's parameter for the transaction is recognized, if known."""
        self._key, self._lease, self._keep = key, lease, keep
        self._group, self._holder = "", ""
        self._working: dict[str, None] = {}
        """The work that this member does now; its claims are renewed."""
        self._keyless: dict[str, None] = {}
        self.suppressed_count = 0
        """Doubles that were acknowledged without running the handler."""
        self.lost_count = 0
        """Claims that lapsed under a running handler: the work may have been done twice."""

    # life

    async def start(
        self, group: str, clock: WallClock, rng: random.Random, background: Background
    ) -> None:
        """Open the store for one consumer."""
        if self._group:
            raise ConsumerMisused(f"this Once serves group {self._group!r}: make one per consumer")
        try:
            await self._in_time(self.store.open(clock))
        except StoreUnusable:
            raise
        except Exception as error:
            name = type(self.store).__name__
            raise StoreUnusable(f"{name} cannot be opened: {str(error) or 'no answer'}") from error
        self._group, self._holder = group, f"{rng.getrandbits(96):024x}"
        background.every(self._lease / 3, lambda: self._tried(self._renew))
        purge_seconds = PURGE_SECONDS * rng.uniform(0.5, 1.0)
        background.every(purge_seconds, lambda: self._tried(self._purge))

    async def close(self) -> None:
        """Close the store for this consumer."""
        if not self._group:
            return
        self._group = ""
        try:
            await self._in_time(self.store.close())
        except Exception as error:
            log.warning("store of finished work not closed: %r", error)

    async def _tried(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run periodic work; if the store fails, log one line without a traceback."""
        try:
            await work()
        except Exception as error:
            log.warning("store of finished work of %s: %r; tried again", self._group, error)

    async def _renew(self) -> None:
        if self._working:
            keys = list(self._working)
            await self._in_time(self.store.renew(self._group, keys, self._holder, self._lease))

    async def _purge(self) -> None:
        count = PURGE_ROWS
        while count == PURGE_ROWS:
            count = await self._in_time(self.store.purge(PURGE_ROWS))

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T:
        async with asyncio.timeout(STORE_SECONDS_MAX):
            return await work

    # the guard

    def guard(self, function: Callable[..., Any], *, as_list: bool) -> Callable[[Any], Any]:
        """The handler that a consumer runs in place of `function`."""
        step = self._in_transaction if self.transaction else self._under_claims

        async def guarded(given: Any) -> object:
            batch = given if as_list else [given]
            groups: dict[str, list[Delivery]] = {}
            for message in batch:
                groups.setdefault(self._key_of(message), []).append(message)

            async def call(messages: Sequence[Delivery], *more: Any) -> object:
                result = function(list(messages) if as_list else messages[0], *more)
                value = await result if inspect.isawaitable(result) else result
                return None if is_done(value) else value

            return await step(groups, call)

        return guarded

    def _key_of(self, message: Delivery) -> str:
        if self._key is by_keys and not message.keys and message.topic not in self._keyless:
            self._keyless[message.topic] = None
            log.warning(
                "messages of %s have no keys: a second send of the same thing is not found out",
                message.topic,
            )
        return row_key(self._key(message))

    async def _suppress(self, messages: Sequence[Delivery]) -> None:
        for message in messages:
            log.info("%r is a double and was not handled again", message)
            self.suppressed_count += 1
            if message.finished is None:
                await message.ack()

    # in the user's transaction

    async def _in_transaction(
        self, groups: dict[str, list[Delivery]], call: Callable[..., Any]
    ) -> object:
        store = cast("TransactionStore[Any]", self.store)
        value: object = None
        try:
            async with store.transaction() as transaction:
                async with asyncio.timeout(2 * self._lease):
                    verdicts = await store.mark(transaction, self._group, list(groups), self._keep)
                if WorkState.BUSY in verdicts.values():
                    raise _RolledBack(None)
                fresh = [groups[key][0] for key in groups if verdicts[key] is WorkState.OURS]
                if fresh:
                    value = await call(fresh, transaction)
                if value is not None or any(message.finished in UNDONE for message in fresh):
                    raise _RolledBack(value)
        except _RolledBack as undone:
            verdict = undone.value
            for message in _all(groups):
                if message.finished is None and isinstance(verdict, ConsumeStatus):
                    await finish_by(verdict, message)
                elif message.finished is None:
                    await message.retry()
            return verdict
        await self._finish(groups, fresh)
        return None

    async def _finish(self, groups: dict[str, list[Delivery]], fresh: Sequence[Delivery]) -> None:
        """Acknowledge finished work and all doubles of it."""
        for message in fresh:
            if message.finished is None:
                await message.ack()
        handled = {id(message) for message in fresh}
        await self._suppress([m for m in _all(groups) if id(m) not in handled])

    # under claims

    async def _under_claims(
        self, groups: dict[str, list[Delivery]], call: Callable[..., Any]
    ) -> object:
        """Do the free work first, and wait for the rest without holding claims: no deadlock.

        After two leases of waiting the rest is retried later, because its holder is alive: claims
        of a dead member have lapsed by then.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 2 * self._lease
        pause, pause_max = BUSY_PAUSE_SECONDS
        left = dict(groups)
        while left:
            verdicts = await self._claim(list(left))
            done = [key for key in left if verdicts[key] is WorkState.DONE]
            ours = {key: left.pop(key) for key in list(left) if verdicts[key] is WorkState.OURS}
            if ours:
                value = await self._work(ours, call)
                if value is not None:
                    return value
            for key in done:
                await self._suppress(left.pop(key))
            if ours or not left:
                continue
            if loop.time() >= deadline:
                log.info("another member is still at %s: later", ", ".join(left))
                for message in _all(left):
                    await message.retry(reason="another member is at the same work")
                return None
            await asyncio.sleep(pause)
            pause = min(pause * 2, pause_max)
        return None

    async def _claim(self, keys: list[str]) -> dict[str, WorkState]:
        """Claim work; what another task of this process works on is BUSY without a request."""
        verdicts = {key: WorkState.BUSY for key in keys if key in self._working}
        free = [key for key in keys if key not in verdicts]
        if not free:
            return verdicts
        for key in free:
            self._working[key] = None
        try:
            verdicts |= await self._in_time(
                self.store.claim(self._group, free, self._holder, self._lease)
            )
        finally:
            for key in free:
                if verdicts.get(key) is not WorkState.OURS:
                    del self._working[key]
        return verdicts

    async def _work(self, ours: dict[str, list[Delivery]], call: Callable[..., Any]) -> object:
        first = [messages[0] for messages in ours.values()]
        try:
            if self.at_most_once:
                await self._done(list(ours))
                for message in first:
                    await message.ack()
            try:
                value = await call(first)
            except BaseException:
                await self._release(list(ours))
                raise
            undone = [key for key, (message, *_) in ours.items() if message.finished in UNDONE]
            if value is not None:
                undone = list(ours)
            if undone:
                await self._release(undone)
            if value is None:
                await self._settle(ours, undone)
            return value
        finally:
            for key in ours:
                del self._working[key]

    async def _settle(self, ours: dict[str, list[Delivery]], undone: Sequence[str]) -> None:
        done = {key: messages for key, messages in ours.items() if key not in undone}
        if done:
            if not self.at_most_once:
                await self._done(list(done))
            await self._finish(done, [messages[0] for messages in done.values()])
        for key in undone:
            for message in ours[key][1:]:
                await message.retry()

    async def _done(self, keys: list[str]) -> None:
        """Mark work as done, with a few tries: without the mark it would be done again."""
        for left in reversed(range(DONE_TRIES)):
            try:
                lost = await self._in_time(
                    self.store.done(self._group, keys, self._holder, self._keep)
                )
                break
            except Exception as error:
                if not left:
                    raise
                log.warning("%s not marked as done: %r; tried again", ", ".join(keys), error)
                await asyncio.sleep(DONE_PAUSE_SECONDS)
        if lost:
            self.lost_count += len(lost)
            log.warning("claims lapsed during the work, maybe done twice: %s", ", ".join(lost))

    async def _release(self, keys: list[str]) -> None:
        """Release claims; if that fails they lapse. A `done` mark made before the work stays."""
        try:
            await self._in_time(self.store.release(self._group, keys, self._holder))
        except Exception as error:
            log.warning("claims on %s not given up, they lapse: %r", ", ".join(keys), error)


def _all(groups: dict[str, list[Delivery]]) -> list[Delivery]:
    return [message for messages in groups.values() for message in messages]
