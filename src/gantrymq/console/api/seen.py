"""Messages as the console shows them: behind the masking rules, bodies decoded."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Final

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.messages.received import Received
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.decoding.forms import BodyForm, DecodedBody, Schema, decode_body
from gantrymq.console.api.decoding.plain import with_letters
from gantrymq.console.api.endpoint import Answer
from gantrymq.console.api.kept import KeptList
from gantrymq.console.api.masking.masker import Masker, SeenBody, holds_copies, topics_of
from gantrymq.console.api.masking.rules import MaskRule
from gantrymq.console.errors import BadInput, Forbidden
from gantrymq.message_fields import RESERVED
from gantrymq.protocol import properties

PREVIEW_CHARACTERS: Final = 240
PREVIEW_BYTES_MAX: Final = 64 * 1024
"""Larger bodies are not decoded for a list, only cut."""
_SPACE: Final = re.compile(r"\s+")
_SYSTEM: Final = frozenset(
    {value for name, value in vars(properties).items() if name.isupper() and isinstance(value, str)}
    | set(properties.FAILURE)
    | RESERVED
)


class KeptSchema(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A schema that an admin keeps for the topics of a pattern."""

    id: str
    topic: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    """A topic, or several: `orders`, `payment-*`."""
    form: BodyForm
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=200_000)]
    message: Annotated[str, msgspec.Meta(max_length=255)] = ""
    """The message type of a Protocol Buffers body."""

    @property
    def schema(self) -> Schema:
        return Schema(form=self.form, text=self.text, message=self.message)


class MessageRow(Answer, frozen=True, kw_only=True):
    """A message in a list."""

    topic: str
    """Where it lies; of a retry or dead letter that is a topic of the group."""
    broker: str
    queue_id: int
    offset: int
    msg_id: str
    offset_msg_id: str
    tags: str | None
    keys: list[str]
    born_ms: int
    stored_ms: int
    size: int
    """Bytes of the body."""
    preview: str
    """The beginning of the body, decoded."""
    is_masked: bool = False
    """Rules hide something of it."""


class ShownBody(Answer, frozen=True, kw_only=True):
    """A body, decoded."""

    form: str
    text: str
    is_cut: bool
    """The rest is only in the download."""
    size: int
    """Bytes of the whole body."""
    trouble: str
    """Why it is not in the form that was asked for."""
    is_masked: bool
    is_withheld: bool


def is_system_property(name: str) -> bool:
    """Whether RocketMQ or GantryMQ gives a property its meaning."""
    return name in _SYSTEM


def rules_of(ask: Ask, cluster: str) -> KeptList[MaskRule]:
    """The masking rules of a cluster."""
    return KeptList(ask.parts.settings.data, cluster, "masking", MaskRule)


def schemas_of(ask: Ask, cluster: str) -> KeptList[KeptSchema]:
    """The schemas of a cluster."""
    return KeptList(ask.parts.settings.data, cluster, "schemas", KeptSchema)


class Seen:
    """Everything that decides how messages of one cluster are shown."""

    def __init__(self, rules: Sequence[MaskRule], schemas: Sequence[KeptSchema]) -> None:
        self._rules, self._schemas = rules, schemas

    @classmethod
    async def of(cls, ask: Ask, cluster: str) -> "Seen":
        """The rules and schemas of a cluster."""
        ask.clusters.address(cluster)
        return cls(await rules_of(ask, cluster).read(), await schemas_of(ask, cluster).read())

    def schema(self, message: Received) -> Schema | None:
        """The first kept schema that is about a message's topic."""
        topics = topics_of(message) or frozenset()
        for each in self._schemas:
            if any(fnmatchcase(topic, each.topic) for topic in topics):
                return each.schema
        return None

    def masker(self, message: Received) -> Masker:
        """The rules that are about a message."""
        topics = topics_of(message)
        rules = [rule for rule in self._rules if rule.is_about(topics)]
        return Masker(rules, self.schema(message) if rules else None)

    def masker_of_topic(self, topic: str | None) -> Masker:
        """The rules that are about a topic; all rules if messages of any topic may lie there."""
        is_known = bool(topic) and not holds_copies(topic or "")
        return self.masker_of(frozenset([topic or ""]) if is_known else None)

    def masker_of(self, topics: frozenset[str] | None) -> Masker:
        """The rules that are about a message of these topics, as `topics_of` tells them."""
        return Masker(rule for rule in self._rules if rule.is_about(topics))

    def check_condition(self, topic: str, tags: str | None, sql: str | None) -> None:
        """Refuse a condition on a masked property: its answer would tell the value."""
        for name in self.masker_of_topic(topic).names:
            if (sql and name in sql) or (is_tag_filter(tags) and name == properties.TAGS):
                raise BadInput(f"property {name} is masked, so no condition may use it")

    def check_key(self, topic: str) -> None:
        """Refuse a search by a key where keys are masked: it tells whether a guess is right."""
        if properties.KEYS in self.masker_of_topic(topic).names:
            raise BadInput(f"keys are masked in {topic}, so nobody can search for one")

    def check_copy(self, ask: Ask, message_topics: frozenset[str] | None, to: str) -> None:
        """Forbidden if a copy in another topic would show what rules mask; admins may do that."""
        lost = [
            rule
            for rule in self._rules
            if rule.is_about(message_topics) and not rule.is_about(frozenset([to]))
        ]
        if lost and not ask.is_admin:
            raise Forbidden(f"{lost[0].what!r} is masked in {lost[0].topic}, and not in {to}")

    def answers(
        self, message: Received, tags: str | None, sql: str | None, text: str | None
    ) -> bool:
        """Whether what people may see of a message is what they search for.

        Brokers look at all of it. What they find by something masked is left out, or else a search
        would tell it bit by bit.
        """
        masker = self.masker(message)
        if is_tag_filter(tags) and masker.tags(message.tags) != message.tags:
            return False
        if sql:
            shown = masker.properties(message.properties)
            if any(name in sql and shown[name] != value
                   for name, value in message.properties.items()):  # fmt: skip
                return False
        return not text or self.has_text(message, text)

    def has_key(self, message: Received, key: str) -> bool:
        """Whether people may see that a message has a key, or this is its id."""
        return key in (message.msg_id, *self.masker(message).keys(message.keys))

    def body(self, message: Received) -> SeenBody:
        """What rules leave of the body."""
        return self.masker(message).body(body_of(message))

    def row(self, message: Received) -> MessageRow:
        """The message in a list."""
        masker = self.masker(message)
        whole = body_of(message)
        seen = masker.body(whole)
        shown = masker.properties(message.properties)
        return MessageRow(
            topic=message.queue.topic,
            broker=message.queue.broker_name,
            queue_id=message.queue.queue_id,
            offset=message.offset,
            msg_id=message.msg_id,
            offset_msg_id=message.offset_msg_id,
            tags=masker.tags(message.tags),
            keys=masker.keys(message.keys),
            born_ms=message.born_ms,
            stored_ms=message.store_ms,
            size=len(whole),
            preview=self._preview(message, masker, seen),
            is_masked=seen.is_masked or shown != message.properties,
        )

    def _preview(self, message: Received, masker: Masker, seen: SeenBody) -> str:
        if seen.raw is None:
            return seen.why
        raw = seen.raw[:PREVIEW_BYTES_MAX]
        if len(seen.raw) > PREVIEW_BYTES_MAX:
            text = raw[: 4 * PREVIEW_CHARACTERS].decode("utf-8", "replace")
        else:
            schema = None if seen.is_masked else self.schema(message)
            text = decode_body(raw, BodyForm.AUTO, schema).text
        # A number of a binary body is text only now, for patterns too.
        text = masker.text(text[: 8 * PREVIEW_CHARACTERS])
        return _SPACE.sub(" ", text)[:PREVIEW_CHARACTERS]

    def shown(
        self, message: Received, form: BodyForm = BodyForm.AUTO, schema: Schema | None = None
    ) -> ShownBody:
        """The body in a form; `schema` is tried instead of the one that is kept for the topic."""
        masker, whole = self.masker(message), body_of(message)
        seen = masker.body(whole)
        size = len(whole)
        if seen.raw is None:
            return ShownBody(
                form="none", text="", is_cut=False, size=size, trouble=seen.why,
                is_masked=True, is_withheld=True,
            )  # fmt: skip
        kept = None if seen.is_masked and seen.raw[:1] == b"{" else self.schema(message)
        found: DecodedBody = decode_body(seen.raw, form, schema or kept)
        text = found.text if found.form is BodyForm.HEX else masker.text(found.text)
        return ShownBody(
            form=found.form.value, text=text, is_cut=found.is_cut, size=size,
            trouble=masker.text(found.trouble), is_masked=seen.is_masked or text != found.text,
            is_withheld=False,
        )  # fmt: skip

    def has_text(self, message: Received, text: str) -> bool:
        """Whether a text is in what people may see of keys, properties and body."""
        masker = self.masker(message)
        if any(text in each for each in masker.properties(message.properties).values()):
            return True
        raw = masker.body(body_of(message)).raw
        if raw is None or text.encode() in raw:
            return raw is not None
        if text.isascii() or b"\\u" not in raw:
            return False
        return text in masker.text(with_letters(raw.decode("utf-8", "replace")))


def is_tag_filter(tags: str | None) -> bool:
    """Whether an expression of tags chooses some."""
    return bool(tags) and tags != "*"


def body_of(message: Received) -> bytes:
    """The body; as it is stored if it cannot be decompressed."""
    try:
        return message.body
    except GantryError:
        return message.stored_body
