"""A store says which release wrote it, and which releases can read it."""

import json
from pathlib import Path
from typing import Any

import pytest
from storekeeping import contents, keep_store, message

from gantrymq.store import version
from gantrymq.store.errors import StoreError


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


def test_a_damaged_version_gives_way_to_its_backup_or_is_written_anew(tmp_path: Path) -> None:
    """Without it a store counts as one of RocketMQ, which every release reads."""
    keep_store(tmp_path, [message(0, "one")])
    (tmp_path / "store.json").write_text("{")
    keep_store(tmp_path, [message(0, "two")])
    assert version.FORMAT == json.loads((tmp_path / "store.json").read_text())["format"]

    (tmp_path / "store.json").write_text("{")
    (tmp_path / "store.json.bak").write_text('{"format": 9, "oldestReader": 9}')
    with pytest.raises(StoreError, match="format 9"):
        keep_store(tmp_path, [message(0, "three")])
