"""Dead letters: which groups have some, why they died, one beside a message that went well."""

import asyncio
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.letters.dead_letters import (
    Cause,
    CauseTable,
    DeadLetterFilter,
    DeadLetters,
    Letter,
)
from gantrymq.client.admin.letters.good_message import went_well
from gantrymq.client.messages.received import Received
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable, OfCluster
from gantrymq.console.api.kept import KeptList
from gantrymq.console.api.masking.masker import topics_of
from gantrymq.console.api.message import MessageProperty, shown_properties
from gantrymq.console.api.messages import Ms
from gantrymq.console.api.paging import LIMIT, Limit, Offset, matches, part
from gantrymq.console.api.seen import MessageRow, Seen, ShownBody, is_system_property
from gantrymq.console.errors import BadInput, NotThere
from gantrymq.model import DEAD_PREFIX, dead_topic
from gantrymq.protocol import properties

TABLE = EndpointTable("letters")

AT_ONCE: Final = 8
LOOKED_AT_MAX: Final = 50_000
"""Letters that are sorted by cause for one page; the answer says when there are more."""
NOTES_MAX: Final = 2_000
DIFFERENCES_MAX: Final = 300
"""Between a letter and a message that went well."""
VALUE_CHARACTERS_MAX: Final = 300
"""Of a value that is compared."""

Text = Annotated[str, Meta(max_length=1000)]
Target = Literal["retry", "topic"]


class WantedLetterGroups(OfCluster, frozen=True, kw_only=True):
    """Which groups with dead letters to list."""

    search: str = ""
    offset: Offset = 0
    limit: Limit = LIMIT


class LetterGroup(Answer, frozen=True, kw_only=True):
    """A group that has a topic for dead letters."""

    group: str
    letters: int | None
    """None if its brokers do not answer."""
    last_ms: int | None
    trouble: str = ""


class LetterGroups(Answer, frozen=True, kw_only=True):
    groups: list[LetterGroup]
    count: int
    offset: int


class OfGroup(OfCluster, frozen=True, kw_only=True):
    group: str


class ChosenLetters(OfGroup, frozen=True, kw_only=True):
    """Which letters of a group."""

    fingerprint: Text | None = None
    """Of a cause."""
    topic: Text | None = None
    """They were sent to this topic."""
    key: Text | None = None
    """A key, or a message id."""
    since_ms: Ms | None = None
    until_ms: Ms | None = None

    @property
    def filter(self) -> DeadLetterFilter:
        return DeadLetterFilter(
            self.fingerprint, self.topic, self.key, self.since_ms, self.until_ms
        )


class WantedLetters(ChosenLetters, frozen=True, kw_only=True):
    """A page of letters."""

    limit: Limit = LIMIT
    after: str | None = None
    """Where the last page ended."""


class LetterRow(Answer, frozen=True, kw_only=True):
    """A dead letter in a list."""

    row: MessageRow
    dead_id: str
    origin: str
    """The topic it was sent to."""
    tries: int
    died_ms: int
    fingerprint: str
    error: str
    text: str
    reason: str
    resent_from: str | None
    """The letter it was made from, if it died again after it was sent again."""


class LetterPage(Answer, frozen=True, kw_only=True):
    letters: list[LetterRow]
    after: str | None
    """Go on with it; null on the last page."""


class CauseRow(Answer, frozen=True, kw_only=True):
    """Letters that died of the same."""

    fingerprint: str
    error: str
    text: str
    reason: str
    count: int
    topics: dict[str, int]
    first_ms: int
    last_ms: int
    example: str
    """The dead id of the newest one."""
    notes: int


class Causes(Answer, frozen=True, kw_only=True):
    causes: list[CauseRow]
    looked_at: int
    is_complete: bool
    """False if there are more letters than are sorted for one answer."""


class NamedLetter(OfGroup, frozen=True, kw_only=True):
    letter: Annotated[str, Meta(min_length=1, max_length=255)]
    """Its dead id, or its message id."""


class Difference(Answer, frozen=True, kw_only=True):
    """A property or field of the letter, and of the message that went well."""

    name: str
    dead: str | None
    good: str | None
    is_same: bool


class GoodMessage(Answer, frozen=True, kw_only=True):
    """A message of the same topic that the group consumed."""

    row: MessageRow
    body: ShownBody


class LetterDetails(Answer, frozen=True, kw_only=True):
    """A dead letter beside a message that went well."""

    letter: LetterRow
    body: ShownBody
    properties: list[MessageProperty]
    good: GoodMessage | None
    """None if the group consumed no message near the letter."""
    differences: list[Difference]


class ChangedLetter(NamedLetter, frozen=True, kw_only=True):
    """A letter to send again. What is not given stays as it is."""

    to: Target = "retry"
    """retry: only the group gets it; topic: every group does."""
    again: bool = False
    """Also if it was sent again before."""
    body: str | UnsetType = UNSET
    tags: str | UnsetType | None = UNSET
    keys: list[str] | UnsetType = UNSET
    properties: dict[str, str] | UnsetType = UNSET


class Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What somebody wrote about a cause or a letter."""

    id: str
    group: str
    about: str
    """A fingerprint, or a dead id."""
    text: str
    user: str
    at_ms: int


class Notes(Answer, frozen=True, kw_only=True):
    notes: list[Note]


class NewNote(OfGroup, frozen=True, kw_only=True):
    about: Annotated[str, Meta(min_length=1, max_length=255)]
    text: Annotated[str, Meta(min_length=1, max_length=2000)]


class NamedNote(OfGroup, frozen=True, kw_only=True):
    id: str


# reading


@TABLE.get("/clusters/{cluster}/dead-letters")
async def list_letter_groups(ask: Ask, wanted: WantedLetterGroups) -> LetterGroups:
    """The groups that have dead letters, or had some, with how many lie there."""
    admin = await ask.admin(wanted.cluster)
    names = [name.removeprefix(DEAD_PREFIX) for name in sorted(await admin.topics())
             if name.startswith(DEAD_PREFIX)]  # fmt: skip
    names = [name for name in names if matches(name, wanted.search)]
    gate = asyncio.Semaphore(AT_ONCE)

    async def counted(group: str) -> LetterGroup:
        async with gate:
            return await _letter_group(admin, group)

    shown = part(names, wanted.offset, wanted.limit)
    rows = await asyncio.gather(*(counted(name) for name in shown))
    return LetterGroups(groups=list(rows), count=len(names), offset=wanted.offset)


async def _letter_group(admin: Admin, group: str) -> LetterGroup:
    try:
        stats = (await admin.topic_stats(dead_topic(group))).values()
    except GantryError as error:
        return LetterGroup(group=group, letters=None, last_ms=None, trouble=str(error))
    return LetterGroup(
        group=group,
        letters=sum(row.max_offset - row.min_offset for row in stats),
        last_ms=max((row.last_update_timestamp for row in stats), default=0) or None,
    )


def letter_row(seen: Seen, letter: Letter) -> LetterRow:
    """A letter behind the masking rules."""
    message, failure = letter.message, letter.failure
    text = seen.masker(message).error
    return LetterRow(
        row=seen.row(message),
        dead_id=letter.dead_id,
        origin=letter.topic,
        tries=message.reconsume_times,
        died_ms=message.store_ms,
        fingerprint=failure.fingerprint,
        error=seen.masker(message).text(failure.error),
        text=text(failure.text),
        reason=text(failure.reason),
        resent_from=message.properties.get(properties.RESENT_FROM),
    )


@TABLE.get("/clusters/{cluster}/groups/{group}/dead-letters")
async def list_letters(ask: Ask, wanted: WantedLetters) -> LetterPage:
    """The dead letters of a group, the oldest first, one page after the other."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    letters = DeadLetters.through(admin, wanted.group)
    page = await letters.page(wanted.filter, limit=wanted.limit, after=wanted.after)
    found = [each for each in page.letters if is_visible(seen, wanted, each)]
    rows = await asyncio.to_thread(lambda: [letter_row(seen, each) for each in found])
    return LetterPage(letters=rows, after=page.after)


def is_visible(seen: Seen, wanted: ChosenLetters, letter: Letter) -> bool:
    """Whether a letter was not found by something that rules mask."""
    return wanted.key is None or seen.has_key(letter.message, wanted.key)


@TABLE.get("/clusters/{cluster}/groups/{group}/dead-letter-causes")
async def list_causes(ask: Ask, wanted: ChosenLetters) -> Causes:
    """The dead letters of a group by cause, the most frequent first."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    notes = await _notes(ask, wanted.cluster).read()
    table, looked_at, is_complete = CauseTable(), 0, True
    newest: dict[str, tuple[int, frozenset[str] | None]] = {}
    async for letter in DeadLetters.through(admin, wanted.group).all(wanted.filter):
        if looked_at >= LOOKED_AT_MAX:
            is_complete = False
            break
        looked_at += 1
        if not is_visible(seen, wanted, letter):
            continue
        table.add(letter)
        cause, at = letter.failure.fingerprint or letter.failure.reason, letter.message.store_ms
        if at >= newest.get(cause, (0, None))[0]:
            newest[cause] = at, topics_of(letter.message)
    rows = [
        _cause(seen, each, newest, [note for note in notes if note.group == wanted.group])
        for each in table.sorted()
    ]
    return Causes(causes=rows, looked_at=looked_at, is_complete=is_complete)


def _cause(
    seen: Seen,
    cause: Cause,
    newest: dict[str, tuple[int, frozenset[str] | None]],
    notes: list[Note],
) -> CauseRow:
    """A cause, whose texts are those of its newest letter, behind the rules about that one."""
    _, topics = newest.get(cause.fingerprint or cause.reason, (0, None))
    masker = seen.masker_of(topics)
    return CauseRow(
        fingerprint=cause.fingerprint,
        error=masker.text(cause.error),
        text=masker.error(cause.text),
        reason=masker.error(cause.reason),
        count=cause.count,
        topics=cause.topics,
        first_ms=cause.first_ms,
        last_ms=cause.last_ms,
        example=cause.sample,
        notes=sum(bool(cause.fingerprint) and note.about == cause.fingerprint for note in notes),
    )


@TABLE.get("/clusters/{cluster}/groups/{group}/dead-letters/{letter}")
async def show_letter(ask: Ask, wanted: NamedLetter) -> LetterDetails:
    """A dead letter, side by side with a message of its topic that the group consumed."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    letter = await DeadLetters.through(admin, wanted.group).one(wanted.letter)
    good = await went_well(admin, wanted.group, letter)
    message = letter.message
    return LetterDetails(
        letter=letter_row(seen, letter),
        body=seen.shown(message),
        properties=shown_properties(seen, message),
        good=GoodMessage(row=seen.row(good), body=seen.shown(good)) if good else None,
        differences=_differences(seen, message, good) if good else [],
    )


def _differences(seen: Seen, dead: Received, good: Received) -> list[Difference]:
    """Property by property and field by field: those that differ first."""
    left, right = _flat(seen, dead), _flat(seen, good)
    rows = [
        Difference(name=name, dead=left.get(name), good=right.get(name),
                   is_same=left.get(name) == right.get(name))
        for name in dict.fromkeys([*left, *right])
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row.is_same)[:DIFFERENCES_MAX]


def _flat(seen: Seen, message: Received) -> dict[str, str]:
    found = {
        f"property {name}": value
        for name, value in seen.masker(message).properties(message.properties).items()
        if not is_system_property(name) or name == properties.TAGS
    }
    body = seen.shown(message)
    found["body form"], found["body bytes"] = body.form, str(body.size)
    try:
        value = msgspec.json.decode(body.text) if body.form != "text" else None
    except (msgspec.MsgspecError, RecursionError):
        value = None
    if isinstance(value, dict | list):
        _flatten(value, "body", found)
    return {name: text[:VALUE_CHARACTERS_MAX] for name, text in found.items()}


def _flatten(value: Any, name: str, found: dict[str, str]) -> None:
    if len(found) > 2 * DIFFERENCES_MAX:
        return
    if isinstance(value, dict):
        for key, each in value.items():
            _flatten(each, f"{name}.{key}", found)
    elif isinstance(value, list):
        for at, each in enumerate(value):
            _flatten(each, f"{name}[{at}]", found)
    else:
        found[name] = msgspec.json.encode(value).decode()


# one letter


@TABLE.post("/clusters/{cluster}/groups/{group}/dead-letters/{letter}/resend")
async def resend_letter(ask: Ask, wanted: ChangedLetter) -> Done:
    """Send a dead letter again, with changes if some are given."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    letters = DeadLetters.through(admin, wanted.group)
    letter = await letters.one(wanted.letter)
    resent = await letters.resend(
        letter,
        to=wanted.to,
        again=wanted.again,
        body=None if wanted.body is UNSET else wanted.body.encode(),
        changes=_changes(seen, letter.message, wanted),
    )
    if resent is None:
        raise BadInput("it was sent again before; say `again` to send it once more")
    return Done(text=f"sent again: {resent.queue}, offset {resent.offset}")


def _changes(seen: Seen, message: Received, wanted: ChangedLetter) -> dict[str, str | None]:
    """What is changed of a letter; what rules mask of it stays as it is stored."""
    found: dict[str, str | None] = {}
    masker = seen.masker(message)
    if wanted.tags is not UNSET and masker.tags(message.tags) == message.tags:
        found[properties.TAGS] = wanted.tags
    if wanted.keys is not UNSET and masker.keys(message.keys) == list(message.keys):
        found[properties.KEYS] = " ".join(wanted.keys)
    if wanted.properties is not UNSET:
        refused = [name for name in wanted.properties if is_system_property(name)]
        if refused:
            raise BadInput(f"{refused[0]} is the system's own property")
        shown = masker.properties(message.properties)
        own = {name for name in message.properties if not is_system_property(name)}
        hidden = {name for name in own if shown[name] != message.properties[name]}
        found |= dict.fromkeys(own - hidden)
        found |= {name: text for name, text in wanted.properties.items() if name not in hidden}
    return found


@TABLE.post("/clusters/{cluster}/groups/{group}/dead-letter-topic/mend")
async def mend_letter_topic(ask: Ask, wanted: OfGroup) -> Done:
    """Make the topic of dead letters readable: brokers before 4.9.2 create it write-only."""
    admin = await ask.admin(wanted.cluster)
    mended = await DeadLetters.through(admin, wanted.group).mend()
    return Done(text=f"readable now: {', '.join(mended)}" if mended else "it was readable")


# notes


def _notes(ask: Ask, cluster: str) -> KeptList[Note]:
    ask.clusters.address(cluster)
    return KeptList(ask.parts.settings.data, cluster, "notes", Note)


@TABLE.get("/clusters/{cluster}/groups/{group}/dead-letter-notes")
async def list_notes(ask: Ask, wanted: OfGroup) -> Notes:
    """What people wrote about the dead letters of a group."""
    found = await _notes(ask, wanted.cluster).read()
    return Notes(notes=[each for each in found if each.group == wanted.group])


@TABLE.post("/clusters/{cluster}/groups/{group}/dead-letter-notes")
async def add_note(ask: Ask, wanted: NewNote) -> Done:
    """Write a note about a cause (its fingerprint) or a letter (its dead id)."""
    now_ms = ask.parts.clock.now_ms()

    def edit(before: list[Note]) -> list[Note]:
        if len(before) >= NOTES_MAX:
            raise BadInput(f"there are {NOTES_MAX} notes already: remove one")
        number = max((int(each.id) for each in before if each.id.isdecimal()), default=0) + 1
        made = Note(
            id=str(number),
            group=wanted.group,
            about=wanted.about,
            text=wanted.text,
            user=ask.user.name,
            at_ms=now_ms,
        )
        return [*before, made]

    await _notes(ask, wanted.cluster).change(edit)
    return Done(text="the note is kept")


@TABLE.delete("/clusters/{cluster}/groups/{group}/dead-letter-notes/{id}")
async def delete_note(ask: Ask, wanted: NamedNote) -> Done:
    """Remove a note."""

    def edit(before: list[Note]) -> list[Note]:
        others = [each for each in before if (each.group, each.id) != (wanted.group, wanted.id)]
        if len(others) == len(before):
            raise NotThere(f"there is no note {wanted.id!r}")
        return others

    await _notes(ask, wanted.cluster).change(edit)
    return Done(text="the note is removed")
