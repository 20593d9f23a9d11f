"""A store in Redis, which all members share. Rows expire in Redis by themselves.

It has no transaction with the user's database, and a Redis that fails over may lose its last
writes: after a lost claim or `done` the work may be done again.
"""

from collections.abc import Sequence
from typing import Any, Final

from gantrymq.base.clock import WallClock
from gantrymq.client.once.store import SharedStore, WorkState, driver

PREFIX: Final = "gantrymq:once"
_OURS, _DONE, _BUSY = 0, 1, 2

CLAIM: Final = """
local now = redis.call('GET', KEYS[1])
if now and string.sub(now, 1, 5) == 'done ' then return 1 end
if now and now ~= ARGV[1] then return 2 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
"""
RENEW: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
FINISH: Final = """
local now = redis.call('GET', KEYS[1])
if now and now ~= ARGV[1] and now ~= 'done ' .. ARGV[1] then return 2 end
redis.call('SET', KEYS[1], 'done ' .. ARGV[1], 'PX', ARGV[2])
return 0
"""
RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0
"""


class RedisStore(SharedStore):
    """Give it an address (`redis://host:6379/0`), or your own `redis.asyncio.Redis`."""

    one_host = False

    def __init__(self, source: Any, *, prefix: str = PREFIX) -> None:
        super().__init__()
        self._prefix = prefix
        self._url = source if isinstance(source, str) else None
        self._redis: Any = None if self._url else source

    async def _open(self, clock: WallClock) -> None:
        if self._url is not None:
            self._redis = driver("redis.asyncio", "redis").Redis.from_url(self._url)
        try:
            await self._redis.ping()
        except BaseException:
            await self._close()
            raise

    async def _close(self) -> None:
        if self._url is not None:
            await self._redis.aclose()

    async def _each(
        self, script: str, group: str, keys: Sequence[str], *arguments: str | int
    ) -> dict[str, int]:
        """Run the script for each key, in one round trip; a Redis cluster needs one key a call."""
        pipe = self._redis.pipeline(transaction=False)
        for key in keys:
            pipe.eval(script, 1, f"{self._prefix}:{group}:{key}", *arguments)
        answers = await pipe.execute()
        return dict(zip(keys, map(int, answers), strict=True))

    async def claim(
        self, group: str, keys: Sequence[str], holder: str, lease: float
    ) -> dict[str, WorkState]:
        answers = await self._each(CLAIM, group, keys, holder, int(lease * 1000))
        meaning = {_OURS: WorkState.OURS, _DONE: WorkState.DONE, _BUSY: WorkState.BUSY}
        return {key: meaning[answer] for key, answer in answers.items()}

    async def renew(self, group: str, keys: Sequence[str], holder: str, lease: float) -> None:
        await self._each(RENEW, group, keys, holder, int(lease * 1000))

    async def done(self, group: str, keys: Sequence[str], holder: str, keep: float) -> list[str]:
        answers = await self._each(FINISH, group, keys, holder, int(keep * 1000))
        return [key for key, answer in answers.items() if answer == _BUSY]

    async def release(self, group: str, keys: Sequence[str], holder: str) -> None:
        await self._each(RELEASE, group, keys, holder)

    async def purge(self, count_max: int) -> int:
        """Nothing to do: keys expire by themselves."""
        return 0
