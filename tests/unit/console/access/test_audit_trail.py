"""The audit trail: what it tells of a change, and what it must not."""

import asyncio
from pathlib import Path

import pytest

from gantrymq.console.access.audit import FILE, AuditEntry, AuditTrail, shortened
from gantrymq.console.errors import ConsoleError


def entry(number: int, error: str | None = None) -> AuditEntry:
    return AuditEntry(at_ms=number, user="ann", act="act", asked={"number": number}, error=error)


def test_contents_of_messages_are_not_told() -> None:
    """Only how long they are: they may be masked elsewhere."""
    asked = {
        "topic": "pay", "body": "secret", "bodyBase64": "c2VjcmV0", "keys": ["k-1", "k-2"],
        "properties": {"pass": "secret"},
    }  # fmt: skip

    assert shortened(asked) == {
        "topic": "pay", "body": "(6 characters)", "bodyBase64": "(8 characters)",
        "keys": "(2 values)", "properties": {"pass": "(6 characters)"},
    }  # fmt: skip


def test_an_entry_is_short_whatever_is_asked() -> None:
    """Lists, maps and long names are cut, and it says so."""
    asked = {"ids": ["x" * 1000] * 1000, "attributes": {"n" * 1000 + str(n): n for n in range(99)}}

    found = shortened(asked)

    assert len(str(found)) < 30_000
    assert "1000 in all" in str(found["ids"])
    assert "99 in all" in str(found["attributes"])


def test_the_newest_entries_are_found_before_a_time(tmp_path: Path) -> None:
    """The newest first, as many as are asked for."""
    trail = AuditTrail(tmp_path)
    for number in range(10):
        trail.note(entry(number))

    assert [each.at_ms for each in trail.newest(3)] == [9, 8, 7]
    assert [each.at_ms for each in trail.newest(2, before_ms=5)] == [4, 3]
    assert [each.at_ms for each in trail.newest(9, '"number":7')] == [7]


def test_a_change_that_cannot_be_noted_says_so(tmp_path: Path) -> None:
    """With a sentence that tells whether it was done."""
    (tmp_path / FILE).mkdir()

    with pytest.raises(ConsoleError, match="act was done, and could not be noted"):
        asyncio.run(AuditTrail(tmp_path).keep(entry(1)))
    with pytest.raises(ConsoleError, match=r"act failed \(no\), and could not"):
        asyncio.run(AuditTrail(tmp_path).keep(entry(1, "no")))
