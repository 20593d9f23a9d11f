"""What the command line and programs call: replay messages, resume a replay, plan one."""

from dataclasses import dataclass
from typing import Any

from gantrymq.base.errors import ConfigError
from gantrymq.pipelines.common.progress import RunProgress
from gantrymq.pipelines.common.spark_run import StopRequest
from gantrymq.pipelines.replay.journal import Journal, ReplayPlan
from gantrymq.pipelines.replay.request import ReplayRequest
from gantrymq.pipelines.replay.run import CHUNK_ROWS, Replay, ReplayResult


@dataclass(frozen=True, kw_only=True)
class ReplayRun:
    """One run of a replay, as it is asked for: a request, or the id of a replay to resume."""

    request: ReplayRequest | None = None
    resume: str | None = None
    """The id of an unfinished replay."""
    namesrv: str
    journal: Journal
    """Where plans and progress of replays are kept."""
    who: str = ""
    """Who replays; the journal keeps it."""
    rate: int | None = None
    """Messages a second at most; None sends as fast as brokers take them."""
    anew: bool = False
    """Begin again instead of resuming an unfinished replay of an equal request."""
    chunk_rows: int = CHUNK_ROWS
    """Messages that are published at once, at most."""

    def __post_init__(self) -> None:
        if (self.request is None) == (self.resume is None):
            raise ConfigError("a replay has a request, or the id of the replay to resume")


def run_replay(
    spark: Any,
    run: ReplayRun,
    *,
    progress: RunProgress | None = None,
    stop: StopRequest | None = None,
) -> ReplayResult:
    """Replay up to the last chunk, or until `stop` is asked for."""
    replay = _replay(spark, run, progress, stop)
    if run.resume is not None:
        return replay.resume(run.resume, rate=run.rate)
    assert run.request is not None
    return replay.run(run.request, rate=run.rate, anew=run.anew)


def preview_replay(
    spark: Any, run: ReplayRun, *, progress: RunProgress | None = None
) -> ReplayPlan:
    """The plan that a run of a request would have. Nothing is sent and nothing is saved."""
    if run.request is None:
        raise ConfigError("a replay that is resumed has its plan in the journal")
    return _replay(spark, run, progress, None).preview(run.request, rate=run.rate)


def _replay(
    spark: Any, run: ReplayRun, progress: RunProgress | None, stop: StopRequest | None
) -> Replay:
    return Replay(
        spark,
        run.namesrv,
        run.journal,
        who=run.who,
        progress=progress,
        stop=stop,
        chunk_rows=run.chunk_rows,
    )
