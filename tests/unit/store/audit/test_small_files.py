"""An audit looks at tables, the checkpoint, raft state and units beside queue entries as well."""

import re
from pathlib import Path

import pytest
from storekeeping import TOPIC, flip, keep_store, message

from gantrymq.store.audit.advice import ADVICE
from gantrymq.store.audit.findings import Finding
from gantrymq.store.audit.whole import audit_store

COUNT = 30
BITMAP = b"\x01" * 14
KIND = re.compile(r'"((?:log|entry|queue|index|ext|checkpoint|raft|time|dledger)-[a-z]+)"')


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with bitmaps beside its entries, stopped properly."""
    messages = [message(0, f"{number}", tags="t", keys=f"k{number}") for number in range(COUNT)]
    keep_store(tmp_path, messages, marker=lambda topic, found: BITMAP, ext_file_bytes=512)
    return tmp_path


def found(store: Path) -> list[Finding]:
    return audit_store(str(store)).findings


def kinds(store: Path) -> list[tuple[str, str]]:
    return [(each.level, each.kind) for each in found(store)]


def test_units_are_compared_with_their_records(store: Path) -> None:
    """One that contradicts its record is wrong; one that is missing is only a note."""
    assert [] == found(store)
    assert COUNT == audit_store(str(store)).covered["queue entries with their unit"]
    unit = store / "consumequeue_ext" / TOPIC / "0" / f"{0:020d}"

    flip(unit, 9)  # the tag code of the first
    wrong = found(store)
    flip(unit, 9)
    flip(unit, 20 + 14 + 7)  # the log offset of the first
    missing = kinds(store)

    assert [("ext-unit", str(unit), 0)] == [(each.kind, each.file, each.at) for each in wrong]
    assert [("note", "ext-none")] == missing


@pytest.mark.parametrize(
    ("name", "text"),
    [("topics.json", '{"a":'), ("consumerOffset.json", ""), ("delayOffset.json", "[1]")],
)
def test_tables_have_to_be_readable(store: Path, name: str, text: str) -> None:
    """The finding says whether the backup is."""
    table = store / "config" / name
    table.write_text(text)
    (alone,) = found(store)
    (store / "config" / f"{name}.bak").write_text("{1:2}")
    (backed,) = found(store)

    assert ("table", str(table)) == (alone.kind, alone.file) == (backed.kind, backed.file)
    assert "its backup neither" in alone.text
    assert "its backup can" in backed.text


def test_a_table_that_is_gone_is_seen_by_its_backup(store: Path) -> None:
    """RocketMQ 4.9 has a moment in which only the backup is there."""
    (store / "config" / "topics.json.bak").write_text("{}")

    assert [("wrong", "table")] == kinds(store)


def test_the_checkpoint_has_to_fit_its_checksum_and_the_log(store: Path) -> None:
    """A page that was damaged, is too short, or names more than there is."""
    page = (store / "checkpoint").read_bytes()

    flip(store / "checkpoint", 34)
    torn = kinds(store)
    (store / "checkpoint").write_bytes(page[:100])
    short = kinds(store)
    (store / "checkpoint").unlink()
    none = kinds(store)

    assert ("wrong", "checkpoint-page") in torn
    assert ("wrong", "checkpoint-page") in short
    assert [("note", "checkpoint-none")] == none


def test_the_checkpoint_of_another_program_is_no_damage(store: Path) -> None:
    """RocketMQ 5.3 writes its times and an offset into a page of ours, and knows no checksum."""
    page = bytearray((store / "checkpoint").read_bytes())
    for at in (0, 8, 16):
        later = int.from_bytes(page[at : at + 8], "big") + 5_000
        page[at : at + 8] = later.to_bytes(8, "big")
    page[32:40] = (123_456).to_bytes(8, "big")
    (store / "checkpoint").write_bytes(page)

    assert "checkpoint-page" not in [kind for _, kind in kinds(store)]


def test_an_index_file_of_another_size_is_found(store: Path) -> None:
    """A broker would not open the store; one that is missing is derived anew."""
    index = sorted((store / "index").iterdir())[-1]
    index.write_bytes(index.read_bytes()[:-20])

    assert ("wrong", "index-size") in kinds(store)
    index.unlink()
    assert ("wrong", "checkpoint-index") in kinds(store)


@pytest.mark.parametrize(
    ("epochs", "kind"),
    [
        ('{"epochs":[{"term":1,"offset":0},{"term":3,"offset":500}]}', None),
        ('{"epochs":[{"term":3,"offset":0},{"term":1,"offset":500}]}', "raft-epochs"),
        ('{"epochs":[{"term":1,"offset":100}]}', "raft-epochs"),
        ('{"epochs":[', "raft-table"),
    ],
)
def test_the_epochs_of_a_raft_member_rise_and_cover_the_log(
    store: Path, epochs: str, kind: str | None
) -> None:
    """Without them a member does not start."""
    (store / "raft").mkdir()
    (store / "raft" / "state.json").write_text('{"group":"g","me":"n0"}')
    (store / "raft" / "epochs.json").write_text(epochs)

    assert [("wrong", kind)] * (kind is not None) == kinds(store)


def test_every_kind_of_finding_has_its_advice() -> None:
    """What it means for users, and what a repair does."""
    sources = Path(__file__).parents[4] / "src" / "gantrymq" / "store"
    parts = [path for name in ("audit", "tools") for path in (sources / name).glob("*.py")]
    text = "".join(path.read_text() for path in parts if path.name != "advice.py")
    named = {kind for kind in KIND.findall(text) if not kind.startswith("queue-entr")}

    assert named == {kind for kind in ADVICE if "-" in kind}
    assert all(each.means and each.repair for each in ADVICE.values())
