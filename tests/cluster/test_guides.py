"""Every program in `docs/guides` runs as printed, against a cluster over real TCP."""

import asyncio
import io
from contextlib import redirect_stdout

import pytest
from guidekit import GUIDES, programs

from gantrymq.testing.cluster import Cluster

SECONDS_MAX = 60


PROGRAMS = programs("*.md", "async def main(namesrv")


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
