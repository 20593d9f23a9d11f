"""Subscription expressions of the TAG kind, and the hash that queue entries carry."""

from gantrymq.base.arguments import wrong_type
from gantrymq.base.errors import GantryError
from gantrymq.base.java_hash import java_hash
from gantrymq.model import Subscription
from gantrymq.protocol.codes import ResponseCode

ALL = "*"


class BadSubscription(GantryError):
    code = ResponseCode.SUBSCRIPTION_PARSE_FAILED


def parse_tags(expression: str | None) -> list[str]:
    """The tags of `a || b`; an empty list means all messages."""
    if not expression or expression.strip() in ("", ALL):
        return []
    tags = [tag.strip() for tag in expression.split("||")]
    tags = [tag for tag in tags if tag]
    if not tags:
        raise BadSubscription(f"subscription expression {expression!r} names no tag")
    return tags


def subscription(
    topic: str, expression: str | None, kind: str = "TAG", version: int = 0
) -> Subscription:
    """The subscription that a heartbeat carries for an expression."""
    if kind != "TAG":
        return Subscription(
            topic=topic, sub_string=expression or "", expression_type=kind, sub_version=version
        )
    if expression is not None and not isinstance(expression, str):
        raise wrong_type("tags", 'one string, "a" or "a || b"', expression)
    tags = parse_tags(expression)
    return Subscription(
        topic=topic,
        sub_string=(expression or ALL).strip() if tags else ALL,
        tags_set=tags,
        code_set=[java_hash(tag) for tag in tags],
        sub_version=version,
    )


def tag_codes(wanted: Subscription) -> frozenset[int] | None:
    """The tag hashes that a broker lets through; None lets all messages through."""
    if wanted.sub_string in (ALL, "") and not wanted.code_set:
        return None
    codes = wanted.code_set or [java_hash(tag) for tag in parse_tags(wanted.sub_string)]
    return frozenset(codes) or None
