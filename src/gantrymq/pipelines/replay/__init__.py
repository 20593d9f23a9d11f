"""Replay: send past messages again, selected, counted, in order, at a rate, and marked."""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.pipelines.replay.entry import ReplayRun, preview_replay, run_replay
    from gantrymq.pipelines.replay.journal import Journal
    from gantrymq.pipelines.replay.request import ReplayRequest, parse_origin
    from gantrymq.pipelines.replay.run import Replay, ReplayResult

__all__ = [
    "Journal",
    "Replay",
    "ReplayRequest",
    "ReplayResult",
    "ReplayRun",
    "parse_origin",
    "preview_replay",
    "run_replay",
]

_HOMES = {
    "gantrymq.pipelines.replay.entry": ("ReplayRun", "preview_replay", "run_replay"),
    "gantrymq.pipelines.replay.journal": ("Journal",),
    "gantrymq.pipelines.replay.request": ("ReplayRequest", "parse_origin"),
    "gantrymq.pipelines.replay.run": ("Replay", "ReplayResult"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
