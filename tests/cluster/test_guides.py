"""Every program in `docs/guides` runs as printed, against a cluster over real TCP."""

import asyncio
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from gantrymq.testing.cluster import Cluster

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS_MAX = 60


def programs() -> list[tuple[str, str, str | None]]:
    """Each python block that defines `main(namesrv)`, with the text block behind it, if any."""
    found = []
    for guide in sorted(GUIDES.glob("*.md")):
        blocks = BLOCK.findall(guide.read_text())
        for at, (kind, text) in enumerate(blocks):
            if kind == "python" and "async def main(namesrv" in text:
                after = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
                printed = after[1] if after[0] == "text" else None
                found.append((f"{guide.stem}-{at}", text, printed))
    return found


PROGRAMS = programs()


@pytest.mark.parametrize(
    "program, printed", [pytest.param(text, out, id=name) for name, text, out in PROGRAMS]
)
def test_the_program_of_a_guide_runs_and_prints_what_the_guide_says(
    program: str, printed: str | None
) -> None:
    """
    The program takes the name server's address; the text block behind it is its output.
    """

    async def run() -> None:
        async with asyncio.timeout(SECONDS_MAX), Cluster() as cluster:
            await names["main"](cluster.namesrv)  # type: ignore[operator]

    names: dict[str, object] = {"__name__": "guide"}
    exec(compile(program, "guide", "exec"), names)
    output = io.StringIO()
    with redirect_stdout(output):
        asyncio.run(run())

    assert printed is None or printed == output.getvalue()


def test_every_guide_has_a_program_that_runs() -> None:
    """
    A guide without a runnable example does not count. Those for Spark run beside Spark's tests.
    """
    guides = {guide.stem for guide in GUIDES.glob("*.md") if not guide.stem.startswith("spark-")}

    assert guides == {name.rpartition("-")[0] for name, _, _ in PROGRAMS}
