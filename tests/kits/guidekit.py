"""The programs that are printed in guides, for whoever runs them."""

import re
from pathlib import Path

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Program = tuple[str, str, str | None]
"""Its name, its text, and what it prints, if the guide says."""


def programs(pages: str, main: str) -> list[Program]:
    """Each python block that has `main`, with the text block behind it, if any."""
    found: list[Program] = []
    for guide in sorted(GUIDES.glob(pages)):
        blocks = BLOCK.findall(guide.read_text())
        for at, (kind, text) in enumerate(blocks):
            if kind == "python" and main in text:
                after = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
                printed = after[1] if after[0] == "text" else None
                found.append((f"{guide.stem}-{at}", text, printed))
    return found
