"""A rule: which topics it is about, and what of their messages nobody sees."""

from enum import Enum
from fnmatch import fnmatchcase
from typing import Annotated, Final

import msgspec

from gantrymq.console.api.masking.paths import parse_path
from gantrymq.console.api.masking.patterns import Pattern
from gantrymq.console.errors import BadInput
from gantrymq.protocol import properties

RULES_MAX: Final = 200
TOPIC_CHARACTERS_MAX: Final = 255
WHAT_CHARACTERS_MAX: Final = 300
NEVER_MASKED: Final = (properties.UNIQ_KEY,)
"""Without its id nobody could ask for a message."""


class MaskKind(Enum):
    """How a rule finds what it masks."""

    PATH = "path"
    """A field of bodies, by path: `customer.card`, `items[*].price`, `**.password`."""
    PROPERTY = "property"
    """A property, by name; KEYS and TAGS are properties, too."""
    PATTERN = "pattern"
    """Every match of a regular expression in bodies, properties and errors."""


class MaskRule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One rule."""

    id: str
    topic: Annotated[str, msgspec.Meta(max_length=TOPIC_CHARACTERS_MAX)]
    """A topic, or several: `orders`, `payment-*`."""
    kind: MaskKind
    what: Annotated[str, msgspec.Meta(min_length=1, max_length=WHAT_CHARACTERS_MAX)]
    """The path, the name of the property, or the regular expression."""

    def is_about(self, topics: frozenset[str] | None) -> bool:
        """Whether a message of these topics is meant; None if nobody knows where it comes from."""
        return topics is None or any(fnmatchcase(topic, self.topic) for topic in topics)


def check_rule(rule: MaskRule) -> None:
    """BadInput says what is wrong with a rule."""
    if rule.topic.count("*") > 3:
        raise BadInput(f"{rule.topic!r}: write * three times at most")
    if rule.kind is MaskKind.PATH:
        parse_path(rule.what)
    elif rule.kind is MaskKind.PATTERN:
        Pattern(rule.what)
    elif rule.what in NEVER_MASKED:
        raise BadInput(f"{rule.what} is the id of a message: without it nobody finds the message")
