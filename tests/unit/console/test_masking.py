"""Masking: what a rule names is in no view of a message."""

import contextlib
import json
import time
from dataclasses import replace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.console.access.user import LOCAL_USER, ConsoleUser, Role
from gantrymq.console.api.ask import Ask, Parts
from gantrymq.console.api.decoding.forms import BodyForm, Schema
from gantrymq.console.api.masking.masker import Masker
from gantrymq.console.api.masking.paths import mask_path, parse_path
from gantrymq.console.api.masking.rules import MaskKind, MaskRule, check_rule
from gantrymq.console.api.seen import Seen
from gantrymq.console.clusters import Clusters
from gantrymq.console.errors import BadInput, Forbidden

CARD = "4111 1111 1111 1111"
CARD_PATTERN = r"\d(?:[ -]?\d){12,18}"


def rule(kind: MaskKind, what: str, topic: str = "*") -> MaskRule:
    return MaskRule(id="1", topic=topic, kind=kind, what=what)


def masked(body: bytes, *rules: MaskRule, schema: Schema | None = None) -> bytes | None:
    return Masker(rules, schema).body(body).raw


@pytest.mark.parametrize(
    "path, seen",
    [
        ("a", {"a": "***", "b": [{"c": 1}, {"c": 2}]}),
        ("$.b[1].c", {"a": {"c": 0}, "b": [{"c": 1}, {"c": "***"}]}),
        ("b[*].c", {"a": {"c": 0}, "b": [{"c": "***"}, {"c": "***"}]}),
        ("b.c", {"a": {"c": 0}, "b": [{"c": "***"}, {"c": "***"}]}),
        ("*.c", {"a": {"c": "***"}, "b": [{"c": "***"}, {"c": "***"}]}),
        ("**.c", {"a": {"c": "***"}, "b": [{"c": "***"}, {"c": "***"}]}),
        ("nothing", {"a": {"c": 0}, "b": [{"c": 1}, {"c": 2}]}),
    ],
)
def test_paths_name_fields(path: str, seen: Any) -> None:
    """By name, by place in a list, anywhere; a list may stand between without being named."""
    assert mask_path({"a": {"c": 0}, "b": [{"c": 1}, {"c": 2}]}, parse_path(path))[0] == seen


@pytest.mark.parametrize("path", ["", "$", "a..b[", "**", "a[x]", ".".join("a" * 30), "**.a.**.b"])
def test_a_wrong_path_is_refused(path: str) -> None:
    """With a sentence that shows a right one."""
    with pytest.raises(BadInput, match=r"write|parts"):
        parse_path(path)


def test_a_field_of_json_is_masked_and_the_rest_stays_as_it_was_sent() -> None:
    """Numbers keep their digits."""
    body = b'{"price":1.00,"id":12345678901234567890123,"card":{"no":"x"}}'

    found = masked(body, rule(MaskKind.PATH, "card"))

    assert found == b'{"price":1.00,"id":12345678901234567890123,"card":"***"}'


def test_a_field_of_messagepack_is_masked() -> None:
    """The body stays MessagePack."""
    body = msgspec.msgpack.encode({"card": CARD, "ok": 1})

    found = masked(body, rule(MaskKind.PATH, "card"))

    assert found is not None
    assert msgspec.msgpack.decode(found) == {"card": "***", "ok": 1}


@pytest.mark.parametrize("body", [b'{"card": "4111', b"card=4111", b"\x00\x02card", b"[" * 5000])
def test_a_body_whose_fields_cannot_be_found_is_withheld(body: bytes) -> None:
    """Broken JSON and other forms could have the field anywhere."""
    seen = Masker([rule(MaskKind.PATH, "card")]).body(body)

    assert seen.raw is None
    assert "withheld" in seen.why


def test_a_kept_schema_finds_the_fields() -> None:
    """An Avro body is shown as JSON without them."""
    text = '{"type":"record","name":"r","fields":[{"name":"card","type":"string"}]}'
    schema = Schema(form=BodyForm.AVRO, text=text)

    found = masked(b"\x08" + b"4111", rule(MaskKind.PATH, "card"), schema=schema)

    assert found is not None
    assert json.loads(found) == {"card": "***"}


def test_a_pattern_is_masked_in_text_bytes_and_escapes() -> None:
    """Whatever the form of the body is."""
    card = rule(MaskKind.PATTERN, CARD_PATTERN)
    escaped = "".join(f"\\u{ord(char):04x}" for char in CARD)
    for body in (
        f"pays with {CARD}.".encode(),
        b"\xff\x00" + CARD.encode(),
        f'{{"card": "{escaped}"}}'.encode(),
        f'{{"{CARD}": 4111111111111111}}'.encode(),
        msgspec.msgpack.encode([CARD]),
    ):
        found = masked(body, card)
        assert found is not None
        assert b"1111" not in found
        assert b"u0031" not in found


def test_properties_keys_and_texts_are_masked() -> None:
    """By name, or by what is in them; the id of a message stays."""
    masker = Masker([rule(MaskKind.PROPERTY, "secret"), rule(MaskKind.PATTERN, CARD_PATTERN)])

    seen = masker.properties({"secret": "x", "note": CARD, "UNIQ_KEY": CARD, "other": "y"})

    assert seen == {"secret": "***", "note": "*" * len(CARD), "UNIQ_KEY": CARD, "other": "y"}
    assert masker.text(f"failed for {CARD}") == "failed for " + "*" * len(CARD)
    assert Masker([rule(MaskKind.PROPERTY, "KEYS")]).keys(["a"]) == ["***"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", r"(\w+\s?)*$"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Python's own expressions would not come back from these."""
    began = time.perf_counter()
    with contextlib.suppress(BadInput):
        masked(b"a" * 200_000 + b"!", rule(MaskKind.PATTERN, pattern))

    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "made",
    [
        rule(MaskKind.PATTERN, "("),
        rule(MaskKind.PATTERN, "a*"),
        rule(MaskKind.PATTERN, r"(a)\1"),
        rule(MaskKind.PATTERN, "x" * 301),
        rule(MaskKind.PATTERN, "((a{900}){900}){900}"),
        rule(MaskKind.PROPERTY, "UNIQ_KEY"),
        rule(MaskKind.PATH, "**"),
        rule(MaskKind.PATH, "a", topic="*a*b*c*"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(made: MaskRule) -> None:
    """Before it is kept."""
    with pytest.raises(BadInput):
        check_rule(made)


def test_a_rule_that_no_longer_works_withholds_everything() -> None:
    """A broken rule must not show what it masked yesterday."""
    masker = Masker([rule(MaskKind.PATTERN, "(")])

    assert masker.body(b"x").raw is None
    assert masker.text("x") == "***"


def test_rules_are_about_topics() -> None:
    """By name or pattern; a copy whose origin nobody knows is meant by every rule."""
    made = rule(MaskKind.PATH, "a", topic="pay-*")

    assert made.is_about(frozenset({"pay-card"}))
    assert made.is_about(frozenset({"%DLQ%g", "pay-card"}))
    assert not made.is_about(frozenset({"orders"}))
    assert made.is_about(None)


SECRET = "s3cr3t-4711"
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([SECRET, "ok"]),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.sampled_from("abc"), each),
    max_leaves=12,
)


@given(values, st.booleans())
def test_a_secret_is_in_no_masked_body(value: Any, as_json: bool) -> None:
    """Wherever it stands, and in both forms."""
    body = json.dumps(value).encode() if as_json else msgspec.msgpack.encode(value)

    found = masked(body, rule(MaskKind.PATTERN, "s3cr3t-[0-9]+"))

    assert found is None or SECRET.encode() not in found


def test_a_copy_in_another_topic_keeps_its_rules() -> None:
    """Only an admin may send what is masked to a topic where it would not be."""
    seen = Seen([rule(MaskKind.PATH, "card", "pay*")], [])
    ask = Ask(ConsoleUser("shop", Role.CLUSTER_USER), cast(Parts, None), Clusters(()))

    seen.check_copy(ask, frozenset(["pay"]), "pay-again")
    seen.check_copy(ask, frozenset(["orders"]), "elsewhere")
    seen.check_copy(replace(ask, user=LOCAL_USER), frozenset(["pay"]), "elsewhere")
    for origin in (frozenset(["pay"]), None):
        with pytest.raises(Forbidden, match="'card' is masked in pay"):
            seen.check_copy(ask, origin, "elsewhere")


@pytest.mark.parametrize("body", [b"4111111111111111", b'"4111111111111111"', b"null"])
def test_json_without_fields_is_withheld_where_a_field_is_masked(body: bytes) -> None:
    """It may be the field itself, and nobody can tell."""
    assert masked(body, rule(MaskKind.PATH, "card")) is None
    assert masked(body, rule(MaskKind.PATTERN, "x")) == body
