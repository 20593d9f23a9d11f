"""`make demo`."""

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from demo.story import Story


def main() -> int:
    """Tell the story in a folder that is gone afterwards; 0 only if every claim held."""
    with tempfile.TemporaryDirectory(prefix="gantrymq-demo-") as folder:
        # What clients log while their broker is away would drown the story.
        logging.basicConfig(filename=Path(folder, "demo.log"))
        story = Story(Path(folder), Console(highlight=False))
        return 0 if asyncio.run(story.run()) else 1


if __name__ == "__main__":
    sys.exit(main())
