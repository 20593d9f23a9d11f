"""A store says which release wrote it, and which releases can read it."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from storekeeping import contents, keep_store, message

from gantrymq.base.files import save_text
from gantrymq.store import version
from gantrymq.store.errors import StoreError
from gantrymq.testing.disk import MemoryDisk


def written(store: Path, **changes: Any) -> None:
    path = store / "store.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_an_open_store_names_its_release(tmp_path: Path) -> None:
    """Beside RocketMQ's files, which stay what they are."""
    keep_store(tmp_path, [message(0, "one")])

    found = json.loads((tmp_path / "store.json").read_text())

    assert {
        "format": version.FORMAT,
        "oldestReader": version.OLDEST_READER,
        "writtenBy": version.this_release(),
    } == found


def test_a_store_of_a_newer_format_is_refused_and_not_touched(tmp_path: Path) -> None:
    """The text says who wrote it, what is needed, and what to do."""
    keep_store(tmp_path, [message(0, "one")])
    written(tmp_path, format=9, oldestReader=8, writtenBy="7.1.0")
    before = contents(tmp_path)

    with pytest.raises(StoreError) as refused:
        keep_store(tmp_path, [message(0, "two")])

    text = str(refused.value)
    assert "written by GantryMQ 7.1.0 in format 9" in text
    assert "knows format 8" in text
    assert "restore a snapshot" in text
    assert {**before, "lock": b""} == {**contents(tmp_path), "lock": b""}


def test_an_upgrade_can_go_back_as_long_as_the_format_allows_it(tmp_path: Path) -> None:
    """A newer release wrote it, in a way that this one can read; then this one has written it."""
    keep_store(tmp_path, [message(0, "one")])
    written(tmp_path, format=9, oldestReader=version.FORMAT, writtenBy="7.1.0")

    keep_store(tmp_path, [message(0, "two")])

    assert version.this_release() == json.loads((tmp_path / "store.json").read_text())["writtenBy"]


DAMAGES = {
    "flipped": lambda text: "[" + text[1:],
    "cut": lambda text: text[:1],
    "emptied": lambda text: "",
    "missing": None,
    "longer": lambda text: text + "}",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_version_gives_way_to_its_backup_or_is_written_anew(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without it a store counts as one of RocketMQ, which every release reads."""
    path = tmp_path / "store.json"

    def spoil() -> None:
        change = DAMAGES[damage]
        path.unlink() if change is None else path.write_text(change(path.read_text()))

    keep_store(tmp_path, [message(0, "one")])
    spoil()
    keep_store(tmp_path, [message(0, "two")])
    assert version.FORMAT == json.loads(path.read_text())["format"]
    assert (damage != "missing") == ("counts as one of RocketMQ" in caplog.text)

    spoil()
    (tmp_path / "store.json.bak").write_text('{"format": 9, "oldestReader": 9}')
    with pytest.raises(StoreError, match="format 9"):
        keep_store(tmp_path, [message(0, "three")])


@pytest.mark.parametrize("operation", ["pwrite", "sync", "rename"])
def test_a_version_that_cannot_be_written_stops_the_start(operation: str) -> None:
    """Whoever writes on is not known then; the old text stays."""
    disk, path = MemoryDisk(), "store/store.json"
    disk.make_dirs("store")
    save_text(disk, path, '{"format":1,"oldestReader":1,"writtenBy":"0.0.1"}')
    disk.fault = lambda name, where: (
        OSError(errno.ENOSPC, "full", where) if name == operation else None
    )

    with pytest.raises(OSError, match="full") as failed:
        version.record_version(disk, "store")
    assert str(failed.value.filename).startswith(path)
    disk.fault = None
    found = version.load_version(disk, "store")
    assert found is not None
    assert "0.0.1" == found.written_by
