"""The pure parts of transactions: half messages, their table, what a decision looks like."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gantrymq.broker.transactions import half_messages as table_module
from gantrymq.broker.transactions.half import (
    asks_for_half,
    hide,
    producer_group,
    with_property,
    without_half_mark,
)
from gantrymq.broker.transactions.half_messages import HalfMessageTable
from gantrymq.broker.transactions.ops import named_by
from gantrymq.kernel import encode_records
from gantrymq.model import HALF_TOPIC
from gantrymq.protocol import properties
from gantrymq.protocol.record import decode_record
from gantrymq.store.append import Append
from gantrymq.testing.loop import simulate


class TestHalfMessages:
    @pytest.mark.parametrize(
        "text, expected",
        [
            ("TRAN_MSG\x01true\x02", True),
            ("A\x01b\x02TRAN_MSG\x01TRUE", True),
            ("A\x01b\x02TRAN_MSG\x01false\x02", False),
            ("XTRAN_MSG\x01true\x02", False),
            ("XTRAN_MSG\x01true\x02TRAN_MSG\x01true\x02", True),
            ("", False),
        ],
    )
    def test_the_property_asks_for_it(self, text: str, expected: bool) -> None:
        """
        As Java reads it: the whole name, and true in any letters.
        """
        assert expected == asks_for_half(text)

    def test_it_remembers_where_it_belongs(self) -> None:
        """
        Also when a sender brought such properties along: the last one counts.
        """
        message = Append("orders", 3, b"x", properties=b"REAL_TOPIC\x01lie\x02", sys_flag=5)
        hide(message)
        found = properties.decode(message.properties)

        assert (HALF_TOPIC, 0, 1) == (message.topic, message.queue_id, message.sys_flag)
        assert ("orders", "3") == (found["REAL_TOPIC"], found["REAL_QID"])

    @pytest.mark.parametrize(
        "text, expected",
        [
            ("PGROUP\x01a\x02", "a"),
            ("K\x01v\x02PGROUP\x01shop", "shop"),
            ("K\x01v\x02PGROUP\x01shop\x02X\x01y\x02", "shop"),
            ("K\x01v\x02PGROUP\x01old\x02PGROUP\x01new\x02", "new"),
            ("XPGROUP\x01a\x02", ""),
            ("", ""),
        ],
    )
    def test_the_group_that_decides(self, text: str, expected: str) -> None:
        """
        The property, not the header, and the last one of them.
        """
        assert expected == producer_group(text)

    def test_the_mark_can_be_taken_out(self) -> None:
        """
        In its usual form; anything else is left to a closer look.
        """
        assert "A\x01b\x02C\x01d\x02" == without_half_mark(
            "A\x01b\x02TRAN_MSG\x01true\x02C\x01d\x02"
        )
        assert without_half_mark("XTRAN_MSG\x01true\x02") is None
        assert without_half_mark("A\x01b\x02TRAN_MSG\x01true") is None

    def test_a_property_is_set_once(self) -> None:
        """
        However often the copies of a message are renewed.
        """
        stored = with_property(with_property(b"A\x01b\x02", "N", "1"), "N", "2")

        assert {"A": "b", "N": "2"} == properties.decode(stored)


@pytest.mark.parametrize(
    "body, tags, expected",
    [
        (b"12", b"TAGS\x01d\x02", [12]),
        (b"1,22,3,", b"TAGS\x01d\x02", [1, 22, 3]),
        (b"12", b"TAGS\x01x\x02", []),
        (b"junk,7", b"TAGS\x01d\x02", [7]),
    ],
)
def test_decisions_of_both_releases_are_read(body: bytes, tags: bytes, expected: list[int]) -> None:
    """
    One offset a record, or a list of them; other tags mean nothing.
    """
    record, _ = encode_records([(b"T", 0, 0, 0, 0, 0, bytes(8), 0, 0, body, tags)], 0, 0, bytes(8))

    assert expected == named_by(decode_record(record))


def half(number: int, body: bytes = b"body", text: str = "") -> Append:
    """A half message as the store hands it back."""
    message = Append(HALF_TOPIC, 0, body, properties=text.encode())
    message.physical_offset, message.queue_offset = 1000 + number, number
    return message


def with_ledger(story: Callable[[HalfMessageTable], Any]) -> Any:
    async def main() -> Any:
        return story(HalfMessageTable(6000, 60000))

    return simulate(main)


class TestLedger:
    def test_a_message_is_found_at_all_its_places(self) -> None:
        """
        Its newest copy and the older ones, until it is decided.
        """

        def story(half_messages: HalfMessageTable) -> tuple[list[bool], list[bool], list[bool]]:
            half_messages.hold(half(1), "orders", 2, "shop")
            entry = half_messages.find(1001)
            assert entry is not None
            half_messages.move(entry, half(5))
            found = [half_messages.find(place) is entry for place in (1001, 1005, 1002)]
            stands = [entry.stands_at(*place) for place in ((1001, 1), (1005, 5), (1001, 5))]
            half_messages.close(entry)
            half_messages.close(entry)
            return found, stands, [half_messages.find(place) is None for place in (1001, 1005)]

        found, stands, gone = with_ledger(story)

        assert [True, True, False] == found
        assert [True, True, False] == stands
        assert [True, True] == gone

    @pytest.mark.parametrize(
        "text, expected",
        [
            ("", 6),
            ("CHECK_IMMUNITY_TIME_IN_SECONDS\x0130\x02", 30),
            ("CHECK_IMMUNITY_TIME_IN_SECONDS\x01600\x02", 60),
            ("CHECK_IMMUNITY_TIME_IN_SECONDS\x01soon\x02", 6),
        ],
    )
    def test_when_somebody_must_look(self, text: str, expected: float) -> None:
        """
        At its own patience or the broker's; and each minute, to bring it forward.
        """

        def story(half_messages: HalfMessageTable) -> tuple[float, bool]:
            half_messages.hold(half(1, text=text), "orders", 0, "shop")
            return half_messages.next_due, half_messages.sooner.is_set()

        assert (expected, True) == with_ledger(story)

    def test_contents_are_forgotten_when_they_are_many(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        The oldest ones: they can be read from the log. Nothing is counted twice.
        """
        monkeypatch.setattr(table_module, "KEPT_BYTES_MAX", 1000)

        def story(half_messages: HalfMessageTable) -> tuple[list[bool], list[bool]]:
            for number in range(12):
                half_messages.hold(half(number, b"x" * 100), "orders", 0, "shop")
            kept = [entry.body is not None for entry in half_messages.all()]
            for entry in half_messages.all():
                if entry.body is None:
                    half_messages.keep(entry, b"x" * 100, b"")
                half_messages.close(entry)
            for number in range(12, 20):
                half_messages.hold(half(number, b"x" * 100), "orders", 0, "shop")
            return kept, [entry.body is not None for entry in half_messages.all()]

        kept, later = with_ledger(story)

        assert kept == sorted(kept)
        assert 7 <= sum(kept) <= 10
        assert [True] * 8 == later

    def test_too_many_are_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        Then new ones are refused until some are decided.
        """
        monkeypatch.setattr(table_module, "UNDECIDED_MAX", 2)

        def story(half_messages: HalfMessageTable) -> list[bool]:
            said = [half_messages.full]
            for number in range(2):
                half_messages.hold(half(number), "orders", 0, "shop")
            said.append(half_messages.full)
            half_messages.close(half_messages.all()[0])
            return [*said, half_messages.full]

        assert [False, True, False] == with_ledger(story)


def test_a_ledger_belongs_to_a_loop() -> None:
    """
    Its times are the loop's.
    """
    with pytest.raises(RuntimeError):
        HalfMessageTable(1, 1)
    assert asyncio.run(_made()) == 0


async def _made() -> int:
    return len(HalfMessageTable(1, 1))
