"""Archive, replay and report as jobs: what `gantry pipeline` does, in a process of its own."""

from typing import Annotated, Literal

import msgspec

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import EndpointTable, OfCluster
from gantrymq.console.api.jobs import JobStarted, started
from gantrymq.console.api.pipelines.command import check_spark, run_pipeline
from gantrymq.console.api.pipelines.overview import replays_folder
from gantrymq.console.api.pipelines.places import (
    archives_of,
    check_right,
    checked,
    existing,
    reports_of,
)
from gantrymq.console.errors import BadInput
from gantrymq.console.jobs import ConsoleJob

TABLE = EndpointTable("data")

Text = Annotated[str, msgspec.Meta(max_length=4_096)]
Rate = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class NewArchive(OfCluster, frozen=True, kw_only=True):
    """Topics to archive into a table; the same name again goes on where it was."""

    name: Text
    topics: Text
    """Separated by commas."""
    start: Text = "earliest"
    """Where topics begin that are not in the table yet: earliest, latest, or a time."""
    follow: bool = False
    """Go on with new messages until the job is stopped."""
    format: Literal["delta", "iceberg", "parquet"] | None = None
    """Of a new table."""
    allow_gaps: bool = False
    """Skip messages that were deleted before they were archived."""


class NewReplay(OfCluster, frozen=True, kw_only=True):
    """Messages to send again."""

    archive: Text | None = None
    """The archive that they come from; without it the topic itself."""
    topic: Text
    into: Text
    """The topic that they go to."""
    since: Text | None = None
    until: Text | None = None
    keys: list[Text] = msgspec.field(default_factory=list)
    tags: Text = "*"
    sql: Text | None = None
    rate: Rate | None = None
    """Messages a second, at most."""
    same_topic: bool = False
    """Allow the topic that the messages come from."""
    dry_run: bool = False
    """Only count the messages."""


class NewReport(OfCluster, frozen=True, kw_only=True):
    """A report about topics and groups."""

    name: Text
    topics: list[Text] = msgspec.field(default_factory=list)
    """All without any."""
    groups: list[Text] = msgspec.field(default_factory=list)
    since: Text | None = None
    until: Text | None = None
    archive: Text | None = None
    """Read messages from this archive."""


@TABLE.post("/clusters/{cluster}/data/archives")
async def start_archive(ask: Ask, wanted: NewArchive) -> JobStarted:
    """Copy topics into a lakehouse table, each message once."""
    check_right(ask)
    folder = archives_of(ask) / checked(wanted.name)
    words = ["archive", f"--topic={wanted.topics}", f"--into={folder}", f"--from={wanted.start}"]
    words += ["--output=jsonl"]
    words += _flag("--follow", wanted.follow) + _flag("--allow-gaps", wanted.allow_gaps)
    words += _option("--format", wanted.format)
    return _start(ask, wanted, f"archive {wanted.name}", f"archive {wanted.topics}", words)


@TABLE.post("/clusters/{cluster}/data/replays")
async def start_replay(ask: Ask, wanted: NewReplay) -> JobStarted:
    """Send messages of the past again, marked, in the order of their keys and at a rate."""
    check_right(ask)
    origin = f"topic:{wanted.topic}"
    if wanted.archive is not None:
        origin = str(existing(archives_of(ask), wanted.archive))
    words = ["replay", f"--from={origin}", f"--topic={wanted.topic}", f"--into={wanted.into}"]
    words += [f"--state={replays_folder(ask)}", f"--tags={wanted.tags}"]
    words += ["--output=jsonl"]
    words += [f"--key={key}" for key in wanted.keys]
    words += _option("--since", wanted.since) + _option("--until", wanted.until)
    words += _option("--sql", wanted.sql)
    words += _option("--rate", None if wanted.rate is None else f"{wanted.rate}/s")
    words += _flag("--same-topic", wanted.same_topic) + _flag("--dry-run", wanted.dry_run)
    chosen = (wanted.since, wanted.until, wanted.sql, *wanted.keys)
    words += _flag("--all", not any(chosen) and wanted.tags == "*")
    title = f"replay {wanted.topic} into {wanted.into}" + (" (dry run)" if wanted.dry_run else "")
    return _start(ask, wanted, f"replay {wanted.into}", title, words)


@TABLE.post("/clusters/{cluster}/data/reports")
async def start_report(ask: Ask, wanted: NewReport) -> JobStarted:
    """Write a report about topics and groups, with a no-loss ledger."""
    check_right(ask)
    folder = reports_of(ask)
    words = ["report", f"--into={folder / checked(wanted.name)}"]
    words += [f"--topic={name}" for name in wanted.topics]
    words += [f"--group={name}" for name in wanted.groups]
    words += _option("--since", wanted.since) + _option("--until", wanted.until)
    if wanted.archive is not None:
        words.append(f"--archive={existing(archives_of(ask), wanted.archive)}")
    return _start(ask, wanted, f"report {wanted.name}", f"report {wanted.name}", words)


def _start(ask: Ask, wanted: OfCluster, subject: str, title: str, words: list[str]) -> JobStarted:
    check_spark()
    if any("\0" in word for word in words):
        raise BadInput("a value has a character that no command takes")

    async def work(job: ConsoleJob) -> str:
        return await run_pipeline(job, ask, wanted.cluster, words)

    ask.parts.clusters.address(wanted.cluster)
    return started(ask.begin_job(wanted.cluster, subject, title, work))


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{name}={value}"]


def _flag(name: str, is_set: bool) -> list[str]:
    return [name] if is_set else []
