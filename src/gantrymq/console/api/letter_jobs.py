"""Many dead letters: sent again as a job, in stages and with a rate; and exported."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Final, Literal
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Meta

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.admin.letters.dead_letters import DeadLetters, Letter
from gantrymq.client.admin.letters.resend import FAILURES_IN_A_ROW_MAX, RATE_DEFAULT, Resent
from gantrymq.client.core.errors import ClientError
from gantrymq.console.access.audit import AuditEntry
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.csv_text import csv_row
from gantrymq.console.api.endpoint import Answer, Done, Download, EndpointTable
from gantrymq.console.api.jobs import JobStarted, NamedJob, job_to_steer, started
from gantrymq.console.api.letters import ChosenLetters, LetterRow, Target, is_visible, letter_row
from gantrymq.console.api.seen import Seen
from gantrymq.console.errors import NotThere
from gantrymq.console.jobs import ConsoleJob, Jobs

TABLE = EndpointTable("letters")

RATE_MAX: Final = 5000.0
CHOSEN_MAX: Final = 1000
COLUMNS: Final = (
    "deadId", "msgId", "topic", "keys", "tags", "tries", "diedTime", "bornTime", "fingerprint",
    "error", "text", "reason", "resentFrom", "bodyForm", "body",
)  # fmt: skip
_gates: WeakKeyDictionary[Jobs, dict[str, asyncio.Event]] = WeakKeyDictionary()
"""Of each running job: whether it may go on."""


class Resending(ChosenLetters, frozen=True, kw_only=True):
    """Letters to send again: those with these ids, or all that the filter chooses."""

    ids: Annotated[list[str], Meta(max_length=CHOSEN_MAX)] = msgspec.field(default_factory=list)
    to: Target = "retry"
    rate: Annotated[float, Meta(gt=0, le=RATE_MAX)] = RATE_DEFAULT
    """Letters a second, at most."""
    stage: Annotated[int, Meta(ge=1)] | None = None
    """After so many the job waits until somebody looked and lets it go on."""
    again: bool = False
    """Also those that were sent again before."""


class WantedExport(ChosenLetters, frozen=True, kw_only=True):
    """Letters to write into a file."""

    format: Literal["csv", "json", "jsonl"] = "jsonl"


class LetterRecord(Answer, frozen=True, kw_only=True):
    """A letter in an export."""

    dead_id: str
    msg_id: str
    topic: str
    keys: list[str]
    tags: str | None
    tries: int
    died_time: int
    born_time: int
    fingerprint: str
    error: str
    text: str
    reason: str
    resent_from: str | None
    properties: dict[str, str]
    body_form: str
    body: str


@TABLE.post("/clusters/{cluster}/groups/{group}/dead-letters/resend")
async def resend_letters(ask: Ask, wanted: Resending) -> JobStarted:
    """Begin to send letters again, as a job: each once, in stages if asked for, with a rate."""
    admin = await ask.admin(wanted.cluster)
    letters = DeadLetters.through(admin, wanted.group)
    await letters.page(wanted.filter, limit=1)  # says at once what is wrong with the question
    gates = _gates.setdefault(ask.parts.jobs, {})
    resend = _Resend(ask, wanted, letters)

    async def work(job: ConsoleJob) -> str:
        gates[job.id] = resend.gate
        try:
            return await resend.run(job)
        finally:
            del gates[job.id]

    what = counted(len(wanted.ids), "letter") if wanted.ids else "all chosen letters"
    title = f"send {what} of {wanted.group} again"
    subject = f"dead letters of {wanted.group}"
    return started(ask.begin_job(wanted.cluster, subject, title, work))


class _Resend:
    """One job: what it has done, and whether it may go on."""

    def __init__(self, ask: Ask, wanted: Resending, letters: DeadLetters) -> None:
        self._ask, self._wanted, self._letters = ask, wanted, letters
        self.gate = asyncio.Event()
        self.gate.set()
        self._resent = self._skipped = self._failed = 0

    async def run(self, job: ConsoleJob) -> str:
        error: str | None = "stopped"
        try:
            job.total = await self._count()
            await self._send(job)
            error = None
        except GantryError as refused:
            error = str(refused)
            raise
        finally:
            job.say(self._said(job))
            await self._note(job, error)
        return self._said(job)

    async def _count(self) -> int:
        if self._wanted.ids:
            return len(self._wanted.ids)
        return sum([1 async for _ in self._letters.all(self._wanted.filter)])

    async def _chosen(self, job: ConsoleJob) -> AsyncIterator[Letter]:
        if not self._wanted.ids:
            async for letter in self._letters.all(self._wanted.filter):
                yield letter
            return
        seen: set[str] = set()
        for each in self._wanted.ids:
            letter = await self._letters.one(each)
            if letter.dead_id in seen and job.total is not None:
                job.total -= 1  # a letter has two ids
                continue
            seen.add(letter.dead_id)
            yield letter

    async def _send(self, job: ConsoleJob) -> None:
        in_a_row = 0
        async for letter in self._chosen(job):
            if job.total is not None and job.done >= job.total:
                return  # it died after the letters were counted
            await self._wait(job)
            try:
                resent = await self._one(job, letter)
            except GantryError as error:
                self._failed, in_a_row = self._failed + 1, in_a_row + 1
                job.say(f"{letter.dead_id}: {error}")
                if in_a_row >= FAILURES_IN_A_ROW_MAX:
                    raise ClientError(f"{in_a_row} failed in a row; {self._said(job)}") from error
                resent = None
            else:
                in_a_row = 0
                self._resent += resent is not None
                self._skipped += resent is None
            job.done += 1
            if resent is not None:
                await self._after_one(job)

    async def _one(self, job: ConsoleJob, letter: Letter) -> Resent | None:
        """Send one letter. A job that is stopped meanwhile waits for it, and counts it."""
        wanted = self._wanted
        sending = asyncio.ensure_future(
            self._letters.resend(letter, to=wanted.to, again=wanted.again)
        )
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            with contextlib.suppress(GantryError):
                resent = await sending
                self._resent += resent is not None
                self._skipped += resent is None
                job.done += 1
            raise

    async def _after_one(self, job: ConsoleJob) -> None:
        stage = self._wanted.stage
        if stage is not None and self._resent % stage == 0 and job.done != job.total:
            self.gate.clear()
            job.say(f"a stage of {stage} is done: waiting until somebody lets it go on")
        await asyncio.sleep(1 / self._wanted.rate)

    async def _wait(self, job: ConsoleJob) -> None:
        if not self.gate.is_set():
            await self.gate.wait()
            job.say("going on")

    def _said(self, job: ConsoleJob) -> str:
        rest = max(0, (job.total or 0) - job.done)
        return (
            f"{self._resent} sent again, {self._skipped} skipped because they were before, "
            f"{self._failed} failed, {rest} left untouched"
        )

    async def _note(self, job: ConsoleJob, error: str | None) -> None:
        """The end of the job, for the audit trail; its begin is there already."""
        entry = AuditEntry(
            at_ms=self._ask.parts.clock.now_ms(),
            user=self._ask.user.name,
            act="resend_letters_ended",
            asked={
                "cluster": self._wanted.cluster,
                "group": self._wanted.group,
                "job": job.id,
                "outcome": self._said(job),
            },
            error=error,
        )
        await self._ask.parts.audit.keep(entry)


def _gate(ask: Ask, wanted: NamedJob) -> asyncio.Event:
    job = job_to_steer(ask, wanted)
    found = _gates.get(ask.parts.jobs, {}).get(job.id)
    if found is None:
        raise NotThere(f"job {wanted.job!r} does not send letters, or has ended")
    return found


@TABLE.post("/clusters/{cluster}/resend-jobs/{job}/pause")
async def pause_resending(ask: Ask, wanted: NamedJob) -> Done:
    """Let a job that sends letters again wait after its present letter."""
    _gate(ask, wanted).clear()
    return Done(text="it waits")


@TABLE.post("/clusters/{cluster}/resend-jobs/{job}/go-on")
async def go_on_resending(ask: Ask, wanted: NamedJob) -> Done:
    """Let a job that waits go on: the next stage, or after a pause."""
    _gate(ask, wanted).set()
    return Done(text="it goes on")


def is_waiting(ask: Ask, job: str) -> bool:
    """Whether a job waits for somebody to let it go on."""
    gate = _gates.get(ask.parts.jobs, {}).get(job)
    return gate is not None and not gate.is_set()


# export


EXPORT_TYPES: Final = {
    "csv": "text/csv",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
}


@TABLE.get("/clusters/{cluster}/groups/{group}/dead-letter-export", *EXPORT_TYPES.values())
async def export_letters(ask: Ask, wanted: WantedExport) -> Download:
    """Letters of a group as CSV, JSON or JSON lines, behind the masking rules.

    In CSV a text that a spreadsheet would take for a formula has an apostrophe in front.
    """
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    letters = DeadLetters.through(admin, wanted.group)
    await letters.page(wanted.filter, limit=1)
    name = "".join(each if each.isalnum() or each in "-_" else "_" for each in wanted.group)
    return Download(
        EXPORT_TYPES[wanted.format],
        _written(letters, seen, wanted),
        f"dead-letters-{name.encode('ascii', 'replace').decode()}.{wanted.format}",
    )


async def _written(letters: DeadLetters, seen: Seen, wanted: WantedExport) -> AsyncIterator[bytes]:
    is_first = True
    if wanted.format == "csv":
        yield csv_row(COLUMNS)
    async for letter in letters.all(wanted.filter):
        if not is_visible(seen, wanted, letter):
            continue
        record = _record(seen, letter)
        if wanted.format == "csv":
            values = msgspec.to_builtins(record)
            yield csv_row([values[name] for name in COLUMNS])
        elif wanted.format == "jsonl":
            yield msgspec.json.encode(record) + b"\n"
        else:
            yield (b"[\n" if is_first else b",\n") + msgspec.json.encode(record)
        is_first = False
    if wanted.format == "json":
        yield b"[]\n" if is_first else b"\n]\n"


def _record(seen: Seen, letter: Letter) -> LetterRecord:
    row: LetterRow = letter_row(seen, letter)
    body = seen.shown(letter.message)
    return LetterRecord(
        dead_id=row.dead_id,
        msg_id=row.row.msg_id,
        topic=row.origin,
        keys=row.row.keys,
        tags=row.row.tags,
        tries=row.tries,
        died_time=row.died_ms,
        born_time=row.row.born_ms,
        fingerprint=row.fingerprint,
        error=row.error,
        text=row.text,
        reason=row.reason,
        resent_from=row.resent_from,
        properties=seen.masker(letter.message).properties(letter.message.properties),
        body_form=body.form,
        body=body.trouble if body.is_withheld else body.text,
    )
