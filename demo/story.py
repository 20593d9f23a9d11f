"""What happens, in order: trade, crash, recovery, proof."""

import asyncio
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo.cluster import Cluster
from demo.proof import Archive, prove_alone
from demo.readers import Readers
from demo.shop import TOPIC, Shop
from gantrymq import Admin

CUSTOMERS, ORDERS, QUEUES = 500, 20_000, 8
TRADE_SECONDS_MAX = 180.0
PROGRESS_SECONDS = 2.0

Claim = tuple[str, str, bool]
"""What is claimed, the figure behind it, whether it held."""


class Story:
    """One telling of it, with a line whenever there is something to say."""

    def __init__(self, folder: Path, console: Console) -> None:
        self._folder, self._console = folder, console
        self._began = time.monotonic()
        self._down = 0.0

    def _say(self, text: str) -> None:
        self._console.print(f"[dim]{time.monotonic() - self._began:6.1f} s[/]  {text}")

    async def run(self) -> bool:
        """Tell it; True when every claim held."""
        async with Cluster(self._folder / "data") as cluster:
            self._say(f"name server at {cluster.namesrv}, a broker beside it")
            async with Admin(cluster.namesrv) as admin:
                await admin.create_topic(TOPIC, queues=QUEUES)
            shop = Shop(cluster.namesrv, CUSTOMERS, ORDERS)
            readers = Readers(cluster.namesrv, shop.total)
            await self._trade(cluster, shop, readers)
            self._say("Spark starts and reads the topic into Parquet")
            archive = await asyncio.to_thread(
                prove_alone, cluster.namesrv, shop.acknowledged, self._folder
            )
            self._say(f"{archive.rows:,} rows archived and compared")
        return self._conclude(self._claims(shop, readers, archive))

    async def _trade(self, cluster: Cluster, shop: Shop, readers: Readers) -> None:
        """Producers and consumers at work, with a crash in the middle."""
        self._say(f"{CUSTOMERS} customers place {ORDERS:,} orders: {shop.total:,} events")
        progress = asyncio.create_task(self._report(shop, readers))
        try:
            async with asyncio.timeout(TRADE_SECONDS_MAX), readers:
                async with asyncio.TaskGroup() as group:
                    group.create_task(shop.run())
                    group.create_task(self._crash(cluster, shop))
                self._say(f"all {len(shop.acknowledged):,} events are acknowledged")
                await readers.done.wait()
                self._say("both groups have read everything")
        except TimeoutError:
            self._say(f"[red]not done after {TRADE_SECONDS_MAX:.0f} s, going on without the rest")
        finally:
            progress.cancel()

    async def _crash(self, cluster: Cluster, shop: Shop) -> None:
        await shop.half.wait()
        began = time.monotonic()
        pid = await cluster.crash_broker()
        self._say(f"[bold red]kill -9 {pid}[/]: the broker is gone, producers try again")
        seconds = await cluster.start()
        self._down = time.monotonic() - began
        self._say(f"back on the same files and ports, {seconds:.1f} s to start")

    async def _report(self, shop: Shop, readers: Readers) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            self._say(
                f"sent {len(shop.acknowledged):,} of {shop.total:,}, "
                f"read in order {readers.ordered.seen:,}, read plainly {readers.plain.seen:,}"
            )

    def _claims(self, shop: Shop, readers: Readers, archive: Archive) -> list[Claim]:
        total, ordered, plain = shop.total, readers.ordered, readers.plain
        acknowledged = len(shop.acknowledged)
        return [
            ("every event was acknowledged in the end",
             f"{acknowledged:,} of {total:,}, {shop.retries:,} tries failed",
             acknowledged == total),
            ("the broker was killed and came back", f"{self._down:.1f} s away", self._down > 0),
            ("nothing acknowledged was lost", f"{archive.lost:,} lost", archive.lost == 0),
            ("nothing is stored that nobody sent", f"{archive.strangers:,} strangers",
             archive.strangers == 0),
            ("each customer's events are stored in order", f"{archive.misplaced:,} misplaced",
             archive.misplaced == 0),
            ("ordered consumers read all of it in order",
             f"{ordered.seen:,} read, {ordered.skips:,} skipped, {ordered.repeats:,} repeated",
             ordered.seen == total and ordered.skips == 0),
            ("plain consumers read all of it",
             f"{plain.seen:,} read, {plain.repeats:,} repeated", plain.seen == total),
            ("stored twice only where an answer was missing",
             f"{archive.repeats:,} of {archive.rows:,}", archive.repeats <= shop.retries),
            ("a second archive run reads nothing again", f"{archive.second_run:,} rows",
             archive.second_run == 0),
        ]  # fmt: skip

    def _conclude(self, claims: list[Claim]) -> bool:
        table = Table(title=f"{time.monotonic() - self._began:.0f} seconds later")
        table.add_column("claim")
        table.add_column("figure")
        table.add_column("held")
        for claim, figure, held in claims:
            table.add_row(claim, figure, "[green]yes" if held else "[bold red]NO")
        self._console.print(table)
        return all(held for _, _, held in claims)
