"""`make demo`."""

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console

from demo.claims import Claim, verdict
from demo.story import Story

Telling = Callable[[Path, Console], Awaitable[list[Claim]]]


async def tell(folder: Path, console: Console) -> list[Claim]:
    """The whole story."""
    return await Story(folder, console).run()


def main(telling: Telling = tell) -> int:
    """Tell the story in a folder that is gone afterwards; 0 only if every claim held."""
    began, console = time.monotonic(), Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="gantrymq-demo-") as folder:
        # What clients log while their broker is away would drown the story.
        logging.basicConfig(filename=Path(folder, "demo.log"))

        async def told() -> list[Claim]:
            return await telling(Path(folder), console)

        claims = asyncio.run(told())
    title = f"{time.monotonic() - began:.0f} seconds later"
    return 0 if verdict(claims, console, title) else 1


if __name__ == "__main__":
    sys.exit(main())
