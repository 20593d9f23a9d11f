"""Messages of the past, sent again: chosen, counted, in order, at a rate, and marked as such."""

from gantrymq.pipelines.replay.request import ReplayRequest
from gantrymq.pipelines.replay.run import Replay, ReplayResult

__all__ = ["Replay", "ReplayRequest", "ReplayResult"]
