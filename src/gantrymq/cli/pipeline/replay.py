"""`gantry pipeline replay`: send stored or archived messages again."""

import asyncio
import getpass
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from gantrymq.base.plurals import are, counted
from gantrymq.cli.common.known import check_archived, check_names, check_stored
from gantrymq.cli.common.output import Row, namesrv_option, output_option, print_rows
from gantrymq.cli.pipeline.spark_run import Run, spark_options

if TYPE_CHECKING:
    from gantrymq.pipelines.replay import ReplayRequest, ReplayResult, ReplayRun
    from gantrymq.pipelines.replay.journal import Journal, ReplayPlan


@click.command("replay")
@click.option(
    "--from",
    "origin",
    metavar="WHERE",
    help="topic:NAME, store:FOLDER, or the folder of an archive.",
)
@click.option("--topic", help="The topic of the messages; not needed with topic:NAME.")
@click.option("--into", metavar="TOPIC", help="The target topic; the same one needs --same-topic.")
@click.option("--since", metavar="WHEN", help="Stored from then on: 'yesterday 00:00', '2h ago'.")
@click.option("--until", metavar="WHEN", help="Stored before then.")
@click.option(
    "--zone", metavar="ZONE", help="Time zone of WHEN, such as Europe/Berlin; by default local."
)
@click.option("--key", "keys", multiple=True, help="Only messages with this key; repeatable.")
@click.option(
    "--tags", default="*", show_default=True, help="Only messages with one of these tags: 'a || b'."
)
@click.option(
    "--sql", metavar="EXPR", help="Only messages whose properties meet a condition: 'amount > 10'."
)
@click.option(
    "--id", "ids", multiple=True, metavar="MSGID", help="Only the message with this id; repeatable."
)
@click.option("--all", "everything", is_flag=True, help="All messages.")
@click.option(
    "--order",
    type=click.Choice(["key", "queue"]),
    default="key",
    show_default=True,
    help="Keep the order of each key, or of each queue of the origin.",
)
@click.option("--rate", metavar="N/s", help="Messages a second, at most.")
@click.option(
    "--chunk",
    type=click.IntRange(1, 1_000_000),
    default=50_000,
    show_default=True,
    help="Messages that are published at once.",
)
@click.option(
    "--same-topic", is_flag=True, help="Allow the topic that the messages come from as target."
)
@click.option("--dry-run", is_flag=True, help="Only count the messages.")
@click.option(
    "--resume",
    metavar="ID",
    help="Resume the replay with this id; other options of selection are not needed.",
)
@click.option(
    "--anew", is_flag=True, help="Begin a new replay although an equal one is unfinished."
)
@click.option("--history", is_flag=True, help="Only list earlier replays and their results.")
@click.option("--state", metavar="FOLDER", help="Folder of plans and progress of replays.")
@namesrv_option
@output_option
@spark_options
def replay(run: Run, namesrv: str | None, output: str, **words: Any) -> None:
    """Send messages again, into the same topic or another one.

    Each has the properties REPLAY_ID and REPLAY_ORIGIN, by which consumers recognise it. The order
    of each key is kept. After an interruption run the same command again to go on.
    """
    from gantrymq.pipelines.replay.journal import Journal, default_folder

    with run.ending():
        journal = Journal(words["state"] or default_folder())
        if words["history"]:
            print_rows([_history_row(line) for line in journal.history()], output)
            return
        address = namesrv or os.environ.get("NAMESRV_ADDR", "")
        if not address:
            raise click.UsageError("--namesrv is missing: the name server's host:port")
        _replay(run, _work(address, journal, words), words["dry_run"], output)


def _work(namesrv: str, journal: "Journal", words: dict[str, Any]) -> "ReplayRun":
    from gantrymq.pipelines.replay import ReplayRun
    from gantrymq.pipelines.replay.request import parse_rate

    return ReplayRun(
        request=None if words["resume"] else _request(words),
        resume=words["resume"] or None,
        namesrv=namesrv,
        journal=journal,
        who=_who(),
        rate=None if words["rate"] is None else parse_rate(words["rate"]),
        anew=words["anew"],
        chunk_rows=words["chunk"],
    )


def _replay(run: Run, work: "ReplayRun", dry_run: bool, output: str) -> None:
    from gantrymq.base.clock import SystemClock
    from gantrymq.pipelines.common.spark_run import stop_on_signal
    from gantrymq.pipelines.replay import preview_replay, run_replay
    from gantrymq.pipelines.replay.request import check_request
    from gantrymq.pipelines.replay.run import DONE

    if work.resume is not None:
        plan = work.journal.load(work.resume)
        if dry_run:
            _show_plan(plan, work.rate, output, done=work.journal.done(plan))
            return
    elif work.request is not None:
        check_request(work.request, SystemClock().now_ms())
        _check_topic(work.request, work.namesrv)
    progress = run.progress()
    note = "stopping after this chunk; once more to stop now"
    with run.session("replay", namesrv=work.namesrv) as spark, stop_on_signal(note) as stop:
        if dry_run:
            with run.watched(spark, progress):
                plan = preview_replay(spark, work, progress=progress)
            _show_plan(plan, work.rate, output)
            return
        with run.watched(spark, progress):
            result = run_replay(spark, work, progress=progress, stop=stop)
        _show(result, output)
        if result.result == DONE:
            stop.asked = False  # the request came after the last chunk


def _check_topic(request: "ReplayRequest", namesrv: str) -> None:
    """Raise UnknownName unless the origin has the topic."""
    from gantrymq.pipelines.replay.request import ARCHIVE, STORE

    origin = request.origin
    if origin.kind == ARCHIVE:
        check_archived(origin.place, request.topic)
    elif origin.kind == STORE:
        check_stored(origin.place, request.topic)
    else:
        asyncio.run(check_names(namesrv, topics=[request.topic]))


def _request(words: dict[str, Any]) -> "ReplayRequest":
    from gantrymq.base.time_text import local_zone
    from gantrymq.pipelines.replay import ReplayRequest
    from gantrymq.pipelines.replay.request import TOPIC, parse_origin

    if not words["origin"]:
        raise click.UsageError("--from is missing: topic:NAME, store:FOLDER or an archive's folder")
    origin = parse_origin(words["origin"])
    topic = words["topic"] or (origin.place if origin.kind == TOPIC else None)
    if not topic:
        raise click.UsageError("--topic is missing: whose messages?")
    return ReplayRequest(
        origin=origin,
        topic=topic,
        into=words["into"] or topic,
        since=words["since"],
        until=words["until"],
        zone=words["zone"] or local_zone(),
        keys=words["keys"],
        tags=words["tags"],
        sql=words["sql"],
        ids=words["ids"],
        order=words["order"],
        everything=words["everything"],
        same_topic=words["same_topic"],
    )


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _show_plan(plan: "ReplayPlan", rate: int | None, output: str, *, done: int = 0) -> None:
    """Print the plan of a replay; `done` of its chunks were sent before."""
    from gantrymq.base.time_text import describe

    zone = plan.request.zone
    rows: list[Row] = [
        {
            "topic": day.topic,
            "broker": day.broker,
            "queueId": day.queue_id,
            "day": day.day,
            "messages": day.messages,
            "bytes": day.bytes,
            "first": describe(day.first_ms, zone),
            "last": describe(day.last_ms, zone),
        }
        for day in plan.days
    ]
    print_rows(rows, output)
    before = sum(chunk.rows for chunk in plan.chunks[:done])
    length = f", {(plan.messages - before) / rate:.0f} s at {rate}/s" if rate else ""
    sent = f", {before} of them {are(before)} sent already" if before else ""
    print(
        f"{counted(plan.messages, 'message')}, {counted(plan.bytes, 'byte')} would be sent into "
        f"{plan.request.into} ({counted(len(plan.queues), 'queue')}) in "
        f"{counted(len(plan.chunks), 'chunk')}{length}{sent}; nothing was sent now",
        file=sys.stderr,
    )


def _show(result: "ReplayResult", output: str) -> None:
    print_rows(
        [
            {
                "replay": result.id,
                "result": result.result,
                "sent": result.messages,
                "total": result.total,
                "seconds": result.seconds,
            }
        ],
        output,
    )


def _history_row(line: dict[str, Any]) -> Row:
    names = ("when", "who", "event", "id", "from", "topic", "into", "messages", "sent", "seconds")
    chosen = " ".join(f"{name}={value}" for name, value in (line.get("filter") or {}).items())
    return {
        **{name: line.get(name) for name in names},
        "filter": chosen or "all",
        "error": line.get("error"),
    }
