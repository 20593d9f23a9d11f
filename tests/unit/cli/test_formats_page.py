"""docs/formats.md says what the code packs and unpacks."""

import re
from pathlib import Path

from gantrymq.base.layout import byte_fields, byte_layout
from gantrymq.broker.waiting.timer.checkpoint import FILE_BYTES, OWN_AT, WRITE_BYTES
from gantrymq.cli.pages.formats import TABLES, filled
from gantrymq.kernel import ENTRY
from gantrymq.protocol import trace
from gantrymq.protocol.record import BLANK_BYTES, HEAD, RecordHead
from gantrymq.store.recovery.checkpoint import PAGE, CheckpointTimes

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "formats.md").read_text()
NAMES = re.findall(r"<!-- table (.+) -->", TEXT)
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ")]


def test_the_tables_are_printed_from_the_code() -> None:
    """
    When a layout changes: `python -m gantrymq.cli.pages.formats docs/formats.md`.
    """
    assert filled(TEXT) == TEXT


def test_every_table_stands_in_the_page_once() -> None:
    """
    A layout that is declared and not shown is missing from the page.
    """
    assert sorted(TABLES) == sorted(NAMES)


def test_every_field_has_a_meaning() -> None:
    """
    A row whose last cell is empty tells nothing.
    """
    assert [] == [row for row in ROWS if not row.strip("| ").rpartition("|")[2].strip()]
    assert [] == [row for row in ROWS if row.endswith("|  |")]


def test_numbers_in_the_text_are_the_codes() -> None:
    """
    Sizes and places that stand between the tables.
    """
    text = " ".join(TEXT.split())

    assert f"at byte {ENTRY.size} · *n*" in text
    assert f"`MAGIC_BLANK` stand there, {BLANK_BYTES} bytes" in text
    assert f"A page of {PAGE:,} bytes" in text
    assert f"follows at byte {byte_layout(CheckpointTimes).size}," in text
    assert f"`config/timercheck`, {FILE_BYTES:,} bytes, of which the first {WRITE_BYTES}" in text
    assert f"from byte {OWN_AT} on" in text


def test_modules_in_the_text_exist() -> None:
    """
    Each section begins with the file that reads and writes its bytes.
    """
    modules = set(re.findall(r"`([a-z_/]+\.py)`", TEXT))

    assert len(modules) > 10
    assert [] == [name for name in modules if not (ROOT / "src" / "gantrymq" / name).is_file()]


def test_places_of_bytes_are_those_that_struct_uses() -> None:
    """
    The field behind the last one of a record's head begins where the head ends.
    """
    fields = byte_fields(RecordHead, {"born": "8s", "store": "8s"})
    packed = HEAD.pack(*range(1, 10), b"born", 11, b"store", 13, 14, 15)

    assert fields[-1].at + fields[-1].size == HEAD.size
    for number, field in enumerate(fields, 1):
        if field.type != "8 bytes":
            found = int.from_bytes(packed[field.at : field.at + field.size], "big")
            assert (field.name, number) == (field.name, found)


def test_places_of_trace_fields_are_those_of_a_written_record() -> None:
    """
    What the page calls place 6 of `Pub` is the sixth text of the record.
    """
    made = trace.Pub(msg_id="ID", topic="T", cost_ms=7)
    words = trace.encode(made).split(trace.FIELD_END)
    rows = [row.split(" | ") for row in TABLES["trace Pub"]().splitlines()[2:]]
    places = {row[1].strip("`"): int(row[0].strip("| ")) for row in rows}

    assert ("ID", "T", "7") == (
        words[places["msg_id"] - 1],
        words[places["topic"] - 1],
        words[places["cost_ms"] - 1],
    )
