"""Every program in `docs/guides/spark-*.md` runs as printed, with a real Spark and a real broker.

A program is a python block with `def main(spark, namesrv: str) -> None`; the text block behind it
is what it prints. All of them share one cluster, so each has topics of its own.
"""

import io
from contextlib import redirect_stdout
from typing import Any

import pytest
from guidekit import GUIDES, programs
from sparkkit import Processes

pytestmark = pytest.mark.timeout(240)


PROGRAMS = programs("spark-*.md", "def main(spark")


@pytest.mark.parametrize(
    "program, printed", [pytest.param(text, out, id=name) for name, text, out in PROGRAMS]
)
def test_the_spark_program_of_a_guide_prints_what_the_guide_says(
    spark: Any, cluster: Processes, program: str, printed: str | None
) -> None:
    """The program takes a session and the name server's address."""
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile(program, "guide", "exec"), names)
    output = io.StringIO()
    with redirect_stdout(output):
        names["main"](spark, cluster.namesrv)

    assert printed is None or printed == output.getvalue()


def test_every_spark_guide_has_a_program_that_runs() -> None:
    """A guide without a runnable example does not count."""
    guides = {guide.stem for guide in GUIDES.glob("spark-*.md")}

    assert guides == {name.rpartition("-")[0] for name, _, _ in PROGRAMS}
