"""Draws what `python -m bench growth` measured, a picture for each thing that grew.

    python -m bench.charts RESULTS.json FOLDER

RESULTS.json is a file of `bench/results`; the pictures are FOLDER/growth-queues.png and its like.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.workloads.growth import WORKLOAD

PREFIX: Final = f"{WORKLOAD} of "
PANELS: Final = {"rate": "1/s", "processor time": "us/message", "memory": "MiB"}
INCHES: Final = (10.0, 3.0)
DOTS_PER_INCH: Final = 110
COLOUR: Final = "#2b6cb0"

Points = dict[str, list[tuple[float, float]]]
"""Of each panel: where on the axis, and the figure."""


def points_of(rows: Sequence[dict[str, Any]]) -> dict[str, Points]:
    """What grew, and its panels; rows that stand in no chart are left out."""
    found: dict[str, Points] = {}
    for row in rows:
        if row["at"] is None or not row["workload"].startswith(PREFIX):
            continue
        panels = found.setdefault(row["workload"].removeprefix(PREFIX), {})
        panel = row["measure"].partition(": ")[2]
        panels.setdefault(panel, []).append((row["at"], row["value"]))
    return found


def draw(name: str, points: Points, path: Path) -> None:
    """One picture with a panel for each figure; the axis of what grew is logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(PANELS), figsize=INCHES, layout="constrained")
    for axes, (panel, unit) in zip(panels, PANELS.items(), strict=True):
        where, values = zip(*sorted(points[panel]), strict=True)
        axes.plot(where, values, marker="o", color=COLOUR)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_title(f"{panel}, {unit}", fontsize=10)
        axes.set_xlabel(name)
        axes.grid(visible=True, alpha=0.3)
    figure.savefig(path, dpi=DOTS_PER_INCH)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    found = points_of(json.loads(given.results.read_text())["rows"])
    if not found:
        parser.error(f"{given.results} has no rows of the workload {WORKLOAD}")
    for name, points in found.items():
        path = given.folder / f"{WORKLOAD}-{name.replace(' ', '-')}.png"
        draw(name, points, path)
        print(path)


if __name__ == "__main__":
    main()
