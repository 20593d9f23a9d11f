"""Whether a consumer can read the topics it subscribed to; logs or raises when it cannot.

A topic may be created, and a name server come back, at any moment, so a consumer keeps asking. It
logs one warning when the trouble begins; with a `start_timeout` it raises an error instead.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from gantrymq.client.core.errors import ClientError
from gantrymq.client.core.routes import Routes
from gantrymq.model import RETRY_PREFIX

log = logging.getLogger(__name__)

NO_SUBSCRIPTION: Final = "it has no subscription: call subscribe(topic)"
SUBSCRIBE_SECONDS_MAX: Final = 5.0
"""How long after its start a consumer may be without a subscription before a warning is logged."""
NOBODY_ANSWERS: Final = "no broker of it answers"
SILENCE_SECONDS_MAX: Final = 5.0
"""How long that may last without a warning: brokers need a moment to learn of a new member."""


class NotReady(ClientError):
    """A subscribed topic could not be read within `start_timeout`."""


class Readiness:
    """What one consumer cannot read now, and why."""

    def __init__(
        self, group: str, routes: Routes, topics: Collection[str], unknown: Collection[str]
    ) -> None:
        self._group, self._routes = group, routes
        self._topics, self._unknown = topics, unknown
        self._logged: dict[str, str] = {}
        self._silent: dict[str, float] = {}
        self._started = asyncio.get_running_loop().time()
        self._looks = 0
        self._looked = asyncio.Event()

    def troubles(self) -> dict[str, str]:
        """Topic to why it cannot be read; the empty topic stands for no subscription at all."""
        wanted = [topic for topic in self._topics if not topic.startswith(RETRY_PREFIX)]
        if not wanted:
            return {"": NO_SUBSCRIPTION}
        return {
            t: self._routes.failures.get(t) or self._nobody(t) for t in wanted if t in self._unknown
        }

    def _nobody(self, topic: str) -> str:
        """Also tells where brokers were looked for: they may be reached elsewhere (brokerIP1)."""
        route = self._routes.cached(topic)
        brokers = route.broker_datas if route is not None else []
        places = [
            f"{broker.broker_name} at {address}"
            for broker in brokers
            for address in broker.broker_addrs.values()
        ]
        return f"{NOBODY_ANSWERS} ({', '.join(places)})" if places else NOBODY_ANSWERS

    def look(self, *, waits: bool = False) -> None:
        """Log what changed: after a rebalance, or when a caller waits for messages (`waits`)."""
        found = self.troubles()
        now = asyncio.get_running_loop().time()
        age = now - self._started
        self._silent = {
            t: self._silent.get(t, now) for t in found if found[t].startswith(NOBODY_ANSWERS)
        }
        for topic, why in found.items():
            if topic in self._logged or (not topic and not waits and age < SUBSCRIBE_SECONDS_MAX):
                continue
            if topic in self._silent and now - self._silent[topic] < SILENCE_SECONDS_MAX:
                continue
            self._logged[topic] = why
            what = f"cannot read {topic}: {why}" if topic else f"reads nothing: {why}"
            log.warning("consumer group %s %s. It goes on asking", self._group, what)
        for topic in [topic for topic in self._logged if topic not in found]:
            del self._logged[topic]
            if topic:
                log.warning("consumer group %s can read %s now", self._group, topic)
        if not waits:
            self._looks += 1
            self._looked.set()

    async def wait(self, seconds: float) -> None:
        """Return when every topic can be read; raises NotReady after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while not self._looks or self.troubles():
                    self._looked.clear()
                    await self._looked.wait()
        except TimeoutError:
            raise self._not_ready(seconds) from None

    def _not_ready(self, seconds: float) -> NotReady:
        found = self.troubles()
        whys = "; ".join(f"{topic}: {why}" if topic else why for topic, why in found.items())
        return NotReady(
            f"consumer group {self._group} cannot read within {seconds:g} s (start_timeout): "
            f"{whys or 'its queues were not shared out yet'}"
        )


async def ready_or(readiness: Readiness, seconds: float, fail: Callable[[NotReady], None]) -> None:
    """Wait for a topic subscribed to after the start; passes NotReady to `fail`."""
    try:
        await readiness.wait(seconds)
    except NotReady as error:
        fail(error)
