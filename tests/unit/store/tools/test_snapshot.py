"""A snapshot is a store of its own, whatever the broker does meanwhile and later."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from storekeeping import (
    HOST,
    TOPIC,
    StepClock,
    contents,
    keep_store,
    message,
    small,
)

from gantrymq.base.disk import OsDisk
from gantrymq.base.offload import InlineOffload
from gantrymq.store.audit.whole import audit_store
from gantrymq.store.engine import Store
from gantrymq.store.errors import StoreError
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.recovery.log_cut import order_cut
from gantrymq.store.shared import StorePorts
from gantrymq.store.tools import snapshot as snapshots
from gantrymq.store.tools.dump import RecordQuery, records
from gantrymq.store.tools.snapshot import Snapshot, restore_snapshot, take_snapshot

COUNT = 60


def orders(start: int = 0, count: int = COUNT) -> list[Any]:
    return [message(n % 3, f"{n:03d}" * 60, keys=f"k{n}") for n in range(start, start + count)]


def no_wait(seconds: float) -> None:
    raise AssertionError("nothing is waited for")


def taken(store: Path, target: Path, **more: Any) -> Snapshot:
    return take_snapshot(str(store), str(target), sleep=no_wait, **more)


def bodies(store: Path) -> list[str]:
    folder = StoreFolder(str(store))
    found = [
        each.body.decode()
        for queue_id in range(3)
        for each in records(folder, RecordQuery(topic=TOPIC, queue_id=queue_id))
    ]
    return sorted(found)


def expected(count: int) -> list[str]:
    return [f"{n:03d}" * 60 for n in range(count)]


def test_a_snapshot_of_a_stopped_store_is_the_same_store(tmp_path: Path) -> None:
    """Full log files are shared, all else is copied, and nothing of the store changes."""
    keep_store(tmp_path / "store", orders())
    before = contents(tmp_path / "store")

    made = taken(tmp_path / "store", tmp_path / "taken")

    assert before == contents(tmp_path / "store")
    after = contents(tmp_path / "taken")
    assert {"snapshot.json"} == after.keys() - before.keys()
    assert {"lock"} == before.keys() - after.keys()
    assert all(data == before[name] for name, data in after.items() if name in before)
    assert 2 == made.linked_files  # of four: one is in use, and one is made in advance
    assert [] == audit_store(str(tmp_path / "taken")).findings


def test_what_is_written_later_is_not_in_the_snapshot(tmp_path: Path) -> None:
    """Neither store is changed by what the other one does."""
    store, other = tmp_path / "store", tmp_path / "taken"
    keep_store(store, orders())
    taken(store, other)
    before = contents(other)

    keep_store(store, orders(COUNT, 30))
    assert before == contents(other)
    keep_store(other, [message(0, "elsewhere")])

    assert sorted([*expected(COUNT), "elsewhere"]) == bodies(other)
    assert expected(COUNT + 30) == bodies(store)


def test_a_cut_does_not_reach_into_a_snapshot(tmp_path: Path) -> None:
    """It writes zeros into a log file that both had; then each has its own."""
    store, other = tmp_path / "store", tmp_path / "taken"
    keep_store(store, orders())
    taken(store, other)
    before = contents(other)
    at = [each.physical_offset for each in records(StoreFolder(str(store)), RecordQuery())][20]

    asyncio.run(order_cut(str(store), at, disk=OsDisk(), offload=InlineOffload()))
    keep_store(store, [message(0, "after the cut")])

    assert before == contents(other)
    assert sorted([*expected(20), "after the cut"]) == bodies(store)


def test_a_snapshot_of_an_open_store_has_all_that_was_stored(tmp_path: Path) -> None:
    """Entries that are in memory only are derived from the log when it is opened."""
    store, other = tmp_path / "store", tmp_path / "taken"

    async def run() -> None:
        ports = StorePorts(OsDisk(), StepClock(), InlineOffload(), InlineSyncer())
        opened = await Store.open(small(store), ports, store_host=HOST)
        for number, each in enumerate(orders()):
            opened.put(each)
            await asyncio.sleep(0)
            if number == 40:
                await opened.upkeep.checkpoint()
        for _ in range(3):
            await asyncio.sleep(0)
        made = taken(store, other)
        assert made.checkpoint_at is not None
        assert made.checkpoint_at < made.log_end == opened.log_max
        await opened.close()

    asyncio.run(run())
    assert (other / "abort").exists()
    keep_store(other, [message(0, "later")])

    assert sorted([*expected(COUNT), "later"]) == bodies(other)
    assert [] == audit_store(str(other)).findings


def test_files_that_retention_deletes_meanwhile_leave_no_gap(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """The newest file is taken first; what is gone then is the oldest part."""
    store, other = tmp_path / "store", tmp_path / "taken"
    keep_store(store, orders())
    files = sorted((store / "commitlog").iterdir())
    link, linked = os.link, []

    def deleting(path: Path, target: Path) -> None:
        if linked:
            for file in files[:2]:
                file.unlink(missing_ok=True)
        link(path, target)
        linked.append(path)

    monkeypatch.setattr(snapshots.os, "link", deleting)
    taken(store, other)

    left = sorted(path.name for path in (other / "commitlog").iterdir())
    assert [path.name for path in files[1:]] == left
    keep_store(other, [message(0, "later")])
    assert [] == [each for each in audit_store(str(other)).findings if each.level == "wrong"]


def test_a_file_system_without_links_gets_copies(tmp_path: Path, monkeypatch: Any) -> None:
    """As does another file system."""
    keep_store(tmp_path / "store", orders())

    def refuse(path: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(snapshots.os, "link", refuse)
    made = taken(tmp_path / "store", tmp_path / "taken")

    assert 0 == made.linked_files
    assert expected(COUNT) == bodies(tmp_path / "taken")


def test_a_member_of_a_raft_group_gives_its_committed_part(tmp_path: Path) -> None:
    """Without term and vote, and without what came behind the checkpoint."""
    store, other = tmp_path / "store", tmp_path / "taken"
    keep_store(store, orders())
    (store / "raft").mkdir()
    (store / "raft" / "state.json").write_text('{"group":"g","me":"n0"}')

    made = taken(store, other)

    assert not (other / "raft").exists()
    assert made.log_end == made.checkpoint_at
    keep_store(other, [message(0, "later")])
    assert sorted([*expected(COUNT), "later"]) == bodies(other)


def test_a_snapshot_is_restored_into_an_empty_folder_only(tmp_path: Path) -> None:
    """The store is independent of the snapshot; its log may lie elsewhere."""
    store, other, third = tmp_path / "store", tmp_path / "taken", tmp_path / "third"
    keep_store(store, orders())
    made = taken(store, other)
    third.mkdir()
    (tmp_path / "third.restoring").mkdir()  # of a restore that was killed
    (tmp_path / "third.restoring" / "rest").touch()

    with pytest.raises(StoreError, match="is not empty"):
        restore_snapshot(str(other), str(store))
    with pytest.raises(StoreError, match="no finished snapshot"):
        restore_snapshot(str(store), str(third))
    assert made == restore_snapshot(str(other), str(third), log_directory=str(tmp_path / "log"))

    assert {"log", "store", "taken", "third"} == {path.name for path in tmp_path.iterdir()}
    assert all(path.stat().st_nlink == 1 for path in (tmp_path / "log").iterdir())
    keep_store(third, [message(0, "later")], log_directory=str(tmp_path / "log"))
    assert [] == audit_store(str(third), str(tmp_path / "log")).findings


def test_an_unfinished_snapshot_is_none(tmp_path: Path, monkeypatch: Any) -> None:
    """A full disk ends it; the folder cannot be restored, nor used again."""
    keep_store(tmp_path / "store", orders())

    def full(*args: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "copy_data", full)
        with pytest.raises(StoreError, match="is not finished"):
            taken(tmp_path / "store", tmp_path / "taken")

    with pytest.raises(StoreError, match="no finished snapshot"):
        restore_snapshot(str(tmp_path / "taken"), str(tmp_path / "other"))
    with pytest.raises(StoreError, match="not empty"):
        taken(tmp_path / "store", tmp_path / "taken")
