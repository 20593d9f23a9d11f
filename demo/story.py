"""What happens, in order: trade, crash, recovery, dead letters, proof."""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from rich.console import Console

from demo import payments, reminders, shop, warehouse
from demo.afterwards import Afterwards, Again, Told
from demo.claims import Claim
from demo.cluster import Cluster
from demo.payments import Payments
from demo.proof import Archive
from demo.readers import Readers
from demo.reminders import Reminders
from demo.shop import Shop
from demo.warehouse import Warehouse
from gantrymq import Admin
from gantrymq.model import dead_topic

CUSTOMERS, ORDERS, QUEUES = 500, 20_000, 8
REMINDERS, PAYMENTS = 600, 2_000
AGAIN = "orders-again"
"""Where the last hour of orders is replayed into."""
TRADE_SECONDS_MAX = 180.0
PROGRESS_SECONDS = 5.0
SETTINGS = "transactionCheckInterval=3000\n"
"""Who was not there when the broker asked is asked again soon; the default is a minute."""


class Story:
    """One telling of it, with a line whenever there is something to say."""

    def __init__(self, folder: Path, console: Console) -> None:
        self._folder, self._console = folder, console
        self._began = time.monotonic()
        self._cluster = Cluster(folder / "data", SETTINGS)
        namesrv = self._cluster.namesrv
        self._shop = Shop(namesrv, CUSTOMERS, ORDERS)
        self._readers = Readers(namesrv, self._shop.total)
        self._reminders = Reminders(namesrv, REMINDERS, self._shop.share)
        self._payments = Payments(namesrv, PAYMENTS, self._shop.share)
        self._warehouse = Warehouse(namesrv, self._shop.events())

    def _say(self, text: str) -> None:
        self._console.print(f"[dim]{time.monotonic() - self._began:6.1f} s[/]  {text}")

    async def run(self) -> list[Claim]:
        """Tell it; what is claimed in the end."""
        cluster = self._cluster
        async with cluster:
            self._say(f"name server at {cluster.namesrv}, a broker beside it")
            async with Admin(cluster.namesrv) as admin:
                for topic in (shop.TOPIC, reminders.TOPIC, payments.TOPIC, AGAIN):
                    await admin.create_topic(topic, queues=QUEUES)
            await self._trade()
            self._say("Spark starts")
            afterwards = await self._afterwards()
        return [
            *self._shop.claims(),
            *cluster.claims(),
            *self._readers.claims(),
            *self._reminders.claims(),
            *self._payments.claims(),
            *self._warehouse.claims(),
            *(claim for part in afterwards for claim in part.claims()),
        ]

    async def _trade(self) -> None:
        """Producers and consumers at work, with a crash in the middle."""
        self._say(
            f"{CUSTOMERS} customers: {self._shop.total:,} events of {ORDERS:,} orders, "
            f"{PAYMENTS:,} payments, {REMINDERS:,} reminders"
        )
        progress = asyncio.create_task(self._report())
        try:
            async with (
                asyncio.timeout(TRADE_SECONDS_MAX),
                self._readers,
                self._reminders,
                self._payments,
                self._warehouse,
            ):
                parts = (self._shop, self._reminders, self._payments)
                await _together(self._crash(), *(part.run() for part in parts))
                self._say("everything is sent and acknowledged")
                await _together(
                    self._read(), self._remind(), self._settle(), self._bury_and_resend()
                )
        except TimeoutError:
            self._say(f"[red]not done after {TRADE_SECONDS_MAX:.0f} s, going on without the rest")
        finally:
            progress.cancel()

    async def _crash(self) -> None:
        await self._shop.half.wait()
        pid = await self._cluster.crash_broker()
        self._reminders.broker_gone()
        self._say(f"[bold red]kill -9 {pid}[/]: the broker is gone, producers try again")
        seconds = await self._cluster.start()
        self._say(f"back on the same files and ports, {seconds:.1f} s to start")

    async def _read(self) -> None:
        await self._readers.done.wait()
        self._say("both groups have read all events, one of them in order")

    async def _remind(self) -> None:
        await self._reminders.finish()
        self._say(f"the last reminder was due, and {len(self._reminders.came):,} came")

    async def _settle(self) -> None:
        await self._payments.finish()
        self._say(f"payments are settled, the broker asked about {len(self._payments.asked):,}")

    async def _bury_and_resend(self) -> None:
        await self._warehouse.finish()
        for cause, ids in self._warehouse.causes:
            self._say(f"{len(ids):,} orders died of {cause.error}, e.g. {cause.text}")
        self._say(f"mended, {self._warehouse.resent:,} letters resent, and every order is packed")

    async def _afterwards(self) -> tuple[Archive, Again, Told]:
        books = {
            shop.TOPIC: self._shop.books,
            reminders.TOPIC: self._reminders.books,
            payments.TOPIC: self._payments.books,
            dead_topic(warehouse.GROUP): self._warehouse.books,
        }
        work = Afterwards(self._cluster.namesrv, self._folder, self._say)
        return await asyncio.to_thread(work.run, books, shop.TOPIC, AGAIN, self._folder / "report")

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            self._say(
                f"[dim]sent {self._shop.share():.0%}, in order {self._readers.ordered.seen:,},"
                f" reminded {len(self._reminders.came):,}, paid {len(self._payments.delivered):,},"
                f" packed {len(self._warehouse.packed):,}[/]"
            )


async def _together(*work: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(each)
