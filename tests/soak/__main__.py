"""`python -m soak --minutes 60 --kill-seconds 300`."""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from gantrymq import Admin
from gantrymq.base.background import Background
from gantrymq.base.network import TcpNetwork
from gantrymq.model import TopicConfig
from gantrymq.remoting.connection import Connection
from soak.acknowledged import Acknowledged, Verdict, check
from soak.figures import Sample, at_age, mib_per_minute, percentile
from soak.load import Load
from soak.misfits import MESSAGES_ASKED, Misfits
from soak.server import HOST, Servers

SHARE_OF_PEAK: Final = 0.7
PEAK_SECONDS: Final = 10.0
SAMPLE_SECONDS: Final = 1.0
SETTLE_SECONDS: Final = 15.0
"""After a restart, before latencies count: hundreds of connections come back at once."""
GROWTH_MIB_MAX: Final = 24.0
"""How much larger the last life of the broker may be than the first, at the same age."""
SLOPE_MIB_MAX: Final = 4.0
"""MiB a minute, in the second half of a life."""
SLOPE_SECONDS_MIN: Final = 90.0
"""A shorter life still fills its caches, and its slope is printed only."""
TOPICS_AT_ONCE: Final = 200


class Soak:
    """One run."""

    def __init__(self, servers: Servers, connections: int, topics: int, seed: int) -> None:
        self._servers = servers
        self._topics = [f"soak-{number:04d}" for number in range(topics)]
        rng = random.Random(seed)
        self._load = Load(HOST, servers.port, self._topics, connections, rng)
        self._misfits = Misfits(HOST, servers.port, self._topics[0])
        self._background = Background("soak")
        self._samples: list[Sample] = []
        self._lives: list[list[Sample]] = []
        self._p99s: list[float] = []
        self._lost: list[str] = []
        self._checked = 0
        self._life_began = 0.0
        """When the load of this life began, by the clock of files."""

    async def run(self, seconds: float, kill_seconds: float) -> bool:
        """Load, kill, look, again and again; whether everything held."""
        await self._make_topics()
        await self._load.start()
        await self._load.fill(self._topics[0], MESSAGES_ASKED)
        self._misfits.start()
        peak = await self._load.peak(PEAK_SECONDS)
        rate = peak * SHARE_OF_PEAK
        print(f"peak {peak:,.0f} messages/s, load {rate:,.0f}/s", flush=True)
        self._background.every(SAMPLE_SECONDS, self._sample)
        self._background.keep_up(lambda: self._load.pace(rate))
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() + kill_seconds <= end or not self._lives:
            await asyncio.sleep(SETTLE_SECONDS)
            self._load.latencies.clear()
            await asyncio.sleep(max(kill_seconds - SETTLE_SECONDS, SETTLE_SECONDS))
            await self._kill()
        await self._background.close()
        await self._misfits.stop()
        await self._load.stop()
        await self._check(self._load.take())
        return self._tell()

    async def _make_topics(self) -> None:
        configs = [
            TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1)
            for name in self._topics
        ]
        async with Admin(self._servers.namesrv) as admin:
            for at in range(0, len(configs), TOPICS_AT_ONCE):
                await admin.put_topics(self._servers.address, configs[at : at + TOPICS_AT_ONCE])

    async def _sample(self) -> None:
        with suppress(OSError, ValueError):  # just killed
            self._samples.append(self._servers.sample())

    async def _kill(self) -> None:
        """Kill the broker under load, start it, and look at everything since the last kill."""
        life, self._samples = self._samples, []
        self._lives.append(life)
        self._p99s.append(percentile(self._load.latencies, 99) * 1000)
        median = percentile(self._load.latencies, 50) * 1000
        since, self._life_began = self._life_began, time.time()
        self._servers.kill_broker()
        await asyncio.sleep(0.1)  # the last acknowledgements are on their way
        found = self._load.take()
        back = await asyncio.to_thread(self._servers.start_broker)
        self._samples.clear()
        await asyncio.to_thread(self._servers.read_log, since)
        verdict = await self._check(found)
        print(
            f"life {len(self._lives)}: p50 {median:.1f} ms, p99 {self._p99s[-1]:.1f} ms, "
            f"RssAnon {life[-1].rss_anon_mib:.0f} MiB ({mib_per_minute(life):+.2f} a minute), "
            f"{life[-1].descriptors} descriptors; back in {back:.1f} s, "
            f"{verdict.checked:,} acknowledged messages checked, {len(verdict.lost)} lost",
            flush=True,
        )

    async def _check(self, found: dict[str, Acknowledged]) -> Verdict:
        connection = await TcpNetwork().connect(HOST, self._servers.port, Connection, 5.0)
        try:
            verdict = await check(connection, found)
        finally:
            connection.close()
        self._checked += verdict.checked
        self._lost += verdict.lost
        return verdict

    def _tell(self) -> bool:
        lives = [life for life in self._lives if len(life) > 2]
        age = min(life[-1].age for life in lives)
        first, last = at_age(lives[0], age), at_age(lives[-1], age)
        slope = mib_per_minute(lives[-1])
        growth = last.rss_anon_mib - first.rss_anon_mib
        outcomes = ", ".join(f"{name} {count:,}" for name, count in self._load.outcomes.items())
        misfits = ", ".join(f"{name} {count}" for name, count in self._misfits.made.items())
        rows = [
            ("messages", outcomes, True),
            ("slow, dead, silent and rude connections", misfits, True),
            ("acknowledged and lost", f"{len(self._lost)} of {self._checked:,}", not self._lost),
            ("p99, worst life", f"{max(self._p99s):.1f} ms", True),
            (f"RssAnon at {age:.0f} s, first and last life",
             f"{first.rss_anon_mib:.1f} and {last.rss_anon_mib:.1f} MiB", growth <= GROWTH_MIB_MAX),
            ("slope of RssAnon, last life", f"{slope:+.2f} MiB a minute",
             slope <= SLOPE_MIB_MAX or age < SLOPE_SECONDS_MIN),
            ("descriptors, first and last life", f"{first.descriptors} and {last.descriptors}",
             last.descriptors <= first.descriptors * 1.1 + 50),
        ]  # fmt: skip
        for name, value, holds in rows:
            print(f"{'ok    ' if holds else 'BROKEN'}  {name}: {value}")
        for each in self._lost[:10]:
            print(f"lost: {each}")
        return all(holds for _, _, holds in rows)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kill-seconds", type=float, default=300.0)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    folder = Path(tempfile.mkdtemp(prefix="gantrymq-soak-"))

    async def run() -> bool:
        with Servers(folder) as servers:
            soak = Soak(servers, given.connections, given.topics, given.seed)
            return await soak.run(given.minutes * 60, given.kill_seconds)

    held = asyncio.run(run())
    if held:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"the broker's files and logs are in {folder}", file=sys.stderr)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
