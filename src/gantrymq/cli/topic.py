"""`gantry topic`: what is done to a topic as a whole."""

import asyncio
import sys

import click

from gantrymq.base.errors import GantryError
from gantrymq.cli.output import fail, namesrv_option
from gantrymq.client.admin import Admin
from gantrymq.client.shrink import shrink_topic


@click.group("topic")
def topic() -> None:
    """Change topics safely."""


@topic.command("shrink")
@click.argument("name")
@click.option("--queues", type=click.IntRange(1), required=True, help="Queues a broker afterwards.")
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds to wait for readers.")
@namesrv_option
def shrink(name: str, queues: int, timeout: float, namesrv: str | None) -> None:
    """Give topic NAME fewer queues: write queues first, read queues once they are empty."""

    async def run() -> None:
        async with Admin(namesrv) as admin:
            await shrink_topic(
                admin, name, queues, timeout=timeout,
                say=lambda line: print(line, file=sys.stderr, flush=True),
            )  # fmt: skip

    try:
        asyncio.run(run())
    except GantryError as error:
        fail(error)
