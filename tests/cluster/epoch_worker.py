"""A writer of epochs as a process of its own, for a test that kills it: NAMESRV PROGRESS EPOCHS.

PROGRESS is a file with the number of the next epoch, as a checkpoint would be: written behind the
publication, so a kill in between has the epoch written again, then with another run's bodies.
"""

import asyncio
import os
import sys
from pathlib import Path

from gantrymq import Epoch, Message, Publisher

MESSAGES = 40


def next_epoch(progress: Path) -> int:
    return int(progress.read_text())


def remember(progress: Path, number: int) -> None:
    """In one step, as a checkpoint is."""
    fresh = progress.with_suffix(".new")
    fresh.write_text(str(number))
    fresh.replace(progress)


async def main(namesrv: str, progress: Path, epochs: int) -> None:
    async with Publisher(namesrv, "killed") as publisher:
        while (number := next_epoch(progress)) < epochs:
            epoch = Epoch(publisher, number)
            for half in range(2):
                await epoch.add(
                    [
                        Message("orders", f"{number}:{half * MESSAGES // 2 + each}:{os.getpid()}")
                        for each in range(MESSAGES // 2)
                    ]
                )
            await epoch.publish()
            await asyncio.sleep(0.005)
            remember(progress, number + 1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
