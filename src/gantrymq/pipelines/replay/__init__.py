"""Replay: send past messages again, selected, counted, in order, at a rate, and marked."""

from gantrymq.pipelines.replay.request import ReplayRequest
from gantrymq.pipelines.replay.run import Replay, ReplayResult

__all__ = ["Replay", "ReplayRequest", "ReplayResult"]
