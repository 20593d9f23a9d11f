"""Run a replay from its first chunk to its last, or resume one that was interrupted."""

from typing import Any, Final

import msgspec

from gantrymq.base.clock import SystemClock, WallClock, elapsed_seconds
from gantrymq.base.errors import ConfigError
from gantrymq.base.plurals import are, counted
from gantrymq.base.time_text import describe
from gantrymq.pipelines.common.progress import RunProgress, Silent
from gantrymq.pipelines.common.selection import select_messages
from gantrymq.pipelines.common.spark_run import StopRequest
from gantrymq.pipelines.replay.chunk_publisher import ChunkPublisher, SinkPublisher
from gantrymq.pipelines.replay.journal import Journal, ReplayPlan
from gantrymq.pipelines.replay.message_counts import plan_replay, selection_columns
from gantrymq.pipelines.replay.origins import messages
from gantrymq.pipelines.replay.replay_rows import NEEDED, mark_rows
from gantrymq.pipelines.replay.request import ReplayRequest, check_request
from gantrymq.spark.explain import explain

TASKS: Final = 4
"""Spark tasks that send a chunk; each opens connections of its own."""
CHUNK_ROWS: Final = 50_000
PACED_SECONDS: Final = 2
"""With a rate, what so many seconds may send is published at once."""

DONE, STOPPED, FAILED, BEGUN = "done", "stopped", "failed", "begun"


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of a replay ended."""

    id: str
    result: str
    messages: int
    """Sent by this run."""
    total: int
    """Of the whole replay."""
    seconds: float
    resumed: bool = False


class Replay:
    """Replays messages with one Spark session."""

    def __init__(
        self,
        spark: Any,
        namesrv: str,
        journal: Journal,
        *,
        who: str = "",
        progress: RunProgress | None = None,
        stop: StopRequest | None = None,
        publisher: ChunkPublisher | None = None,
        clock: WallClock | None = None,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._spark, self._namesrv, self._journal, self._who = spark, namesrv, journal, who
        self._progress, self._stop = progress or Silent(), stop or StopRequest()
        self._publisher, self._clock = publisher or SinkPublisher(), clock or SystemClock()
        self._chunk_rows = chunk_rows

    def preview(self, request: ReplayRequest, *, rate: int | None = None) -> ReplayPlan:
        """The plan that a run would have. Nothing is sent and nothing is saved."""
        now = self._clock.now_ms()
        check_request(request, now)
        queues = self._publisher.queues(self._namesrv, request.into)
        rows_max = self._chunk_rows
        if rate is not None:
            rows_max = max(1, min(rows_max, rate * PACED_SECONDS))
        return plan_replay(
            self._spark, request, self._namesrv, now, queues=queues, rows_max=rows_max, tasks=TASKS
        )

    def run(
        self, request: ReplayRequest, *, rate: int | None = None, anew: bool = False
    ) -> ReplayResult:
        """Run a replay. An unfinished replay of an equal request is resumed, unless `anew`."""
        check_request(request, self._clock.now_ms())
        known = self._journal.unfinished(request, self._namesrv)
        if known is not None and anew:
            self._journal.drop(known)
        elif known is not None:
            return self._work(known, rate, resumed=True)
        for note in request.selection(self._clock.now_ms())[1]:
            self._progress.note(note)
        plan = self.preview(request, rate=rate)
        self._journal.save(plan)
        return self._work(plan, rate, resumed=False)

    def resume(self, replay: str, *, rate: int | None = None) -> ReplayResult:
        """Resume the replay of this id; the name server's address may have changed."""
        plan = msgspec.structs.replace(self._journal.load(replay), namesrv=self._namesrv)
        if self._journal.done(plan) >= len(plan.chunks):
            sent = counted(plan.messages, "message")
            raise ConfigError(f"the replay {replay} is done: {sent} {are(plan.messages)} sent")
        return self._work(plan, rate, resumed=True)

    # chunk by chunk

    def _work(self, plan: ReplayPlan, rate: int | None, *, resumed: bool) -> ReplayResult:
        with self._journal.claim(plan):
            done = self._journal.done(plan)
            before = sum(chunk.rows for chunk in plan.chunks[:done])
            self._say_begin(plan, before, resumed)
            sent, began = 0, elapsed_seconds()
            result = FAILED
            try:
                self._progress.start(plan.messages, "messages")
                self._progress.advance(before)
                for number in range(done, len(plan.chunks)):
                    wait = seconds_to_wait(sent, rate, elapsed_seconds() - began)
                    if self._stop.pause(wait):
                        break
                    self._publish(plan, number)
                    self._journal.advance(plan, number + 1)
                    sent += plan.chunks[number].rows
                    self._progress.advance(plan.chunks[number].rows)
                result = STOPPED if before + sent < plan.messages else DONE
            except KeyboardInterrupt:
                result = STOPPED
                raise
            except Exception as error:
                self._audit(plan, FAILED, sent, began, error=explain(error))
                raise
            finally:
                self._progress.done()
                if result != FAILED:
                    self._audit(plan, result, sent, began)
        return ReplayResult(
            id=plan.id,
            result=result,
            messages=sent,
            total=plan.messages,
            seconds=round(elapsed_seconds() - began, 3),
            resumed=resumed,
        )

    def _publish(self, plan: ReplayPlan, number: int) -> None:
        request, chunk = plan.request, plan.chunks[number]
        columns = dict.fromkeys((*NEEDED, *selection_columns(plan.selection)))
        found = messages(
            self._spark,
            request.origin,
            plan.namesrv,
            request.topic,
            plan.selection,
            columns=tuple(columns),
            ranges=chunk.ranges,
        )
        ready = mark_rows(
            select_messages(found, plan.selection), plan.id, request.order, plan.queues, plan.tasks
        )
        self._publisher.publish(ready, plan, number)

    # what is said

    def _say_begin(self, plan: ReplayPlan, before: int, resumed: bool) -> None:
        if resumed:
            began = describe(plan.begun_ms, plan.request.zone)
            self._progress.note(
                f"going on with replay {plan.id} of {began}: {before} of "
                f"{counted(plan.messages, 'message')} {are(before)} sent"
            )
        self._audit(plan, BEGUN, 0, elapsed_seconds())

    def _audit(
        self, plan: ReplayPlan, event: str, sent: int, began: float, error: str | None = None
    ) -> None:
        now = self._clock.now_ms()
        line: dict[str, Any] = {
            "event": event,
            "id": plan.id,
            "when": describe(now, "UTC"),
            "who": self._who,
            "from": str(plan.request.origin),
            "topic": plan.request.topic,
            "into": plan.request.into,
            "filter": describe_selection(plan),
            "messages": plan.messages,
            "sent": sent,
            "seconds": round(elapsed_seconds() - began, 3),
        }
        self._journal.note(line if error is None else line | {"error": error})


def describe_selection(plan: ReplayPlan) -> dict[str, Any]:
    """The selection in a few words, with times in the request's zone."""
    selection, zone = plan.selection, plan.request.zone
    found = {
        "since": None if selection.since_ms is None else describe(selection.since_ms, zone),
        "until": None if selection.until_ms is None else describe(selection.until_ms, zone),
        "keys": list(selection.keys),
        "tags": None if selection.tags == "*" else selection.tags,
        "sql": selection.sql,
        "ids": list(selection.ids),
    }
    return {name: value for name, value in found.items() if value}


def seconds_to_wait(sent: int, rate: int | None, elapsed: float) -> float:
    """Seconds to wait so that at most `rate` messages a second are sent since the run began."""
    return 0.0 if rate is None else max(0.0, sent / rate - elapsed)
