"""One contract for every disk, then what only the cruel one can do."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from gantrymq.base.disk import Disk, LockedError, OsDisk, delete_tree
from gantrymq.base.files import load_text, save_text
from gantrymq.testing.disk import PAGE, SECTOR, MemoryDisk


@pytest.fixture(params=["os", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Disk, str]]:
    """A disk and a directory on it."""
    if request.param == "os":
        yield OsDisk(), str(tmp_path)
    else:
        disk = MemoryDisk()
        disk.make_dirs("root")
        yield disk, "root"


def test_what_is_written_is_read(place: tuple[Disk, str]) -> None:
    """
    Reads return what was written at an offset, zeros in holes, and nothing behind the end of
    the file.
    """
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"hello", 10)
    file.pwrite(memoryview(b"HE"), 10)

    assert file.pread(100, 0) == bytes(10) + b"HEllo"
    assert file.pread(3, 11) == b"Ell"
    assert file.pread(3, 99) == b""
    assert file.size() == 15
    assert disk.open_read(f"{root}/a").pread(2, 10) == b"HE"


def test_warm_data_is_read_without_waiting(place: tuple[Disk, str]) -> None:
    """
    `pread_warm` returns data of the page cache, cut at the end of the file.
    """
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"x" * 10_000, 0)

    assert file.pread_warm(5000, 2000) == b"x" * 5000
    assert file.pread_warm(5000, 8000) == b"x" * 2000, "the file ends"


def test_files_grow_with_zeros_and_are_cut(place: tuple[Disk, str]) -> None:
    """
    `allocate` and `truncate` fill with zeros what they add, and closing twice is allowed.
    """
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.allocate(5000)
    assert (file.size(), file.pread(5000, 0)) == (5000, bytes(5000))
    file.pwrite(b"abc", 0)
    file.truncate(2)
    file.truncate(4)
    file.sync()
    assert file.pread(10, 0) == b"ab\0\0"
    file.close()
    file.close()


def test_names_are_listed_renamed_and_deleted(place: tuple[Disk, str]) -> None:
    """
    Directories and files can be made, listed, renamed over each other and deleted.
    """
    disk, root = place
    disk.make_dirs(f"{root}/d/e")
    disk.make_dirs(f"{root}/d/e")
    for name in ("b", "a"):
        disk.open(f"{root}/d/{name}", create=True).pwrite(name.encode(), 0)
    disk.rename(f"{root}/d/a", f"{root}/d/b")
    disk.rename(f"{root}/d", f"{root}/moved")
    disk.sync_dir(root)

    assert disk.list(f"{root}/moved") == ["b", "e"]
    assert disk.open(f"{root}/moved/b").pread(9, 0) == b"a"
    assert disk.list(f"{root}/nowhere") == []
    assert (disk.is_dir(f"{root}/moved/e"), disk.is_dir(f"{root}/moved/b")) == (True, False)
    delete_tree(disk, f"{root}/moved")
    assert not disk.exists(f"{root}/moved")


def test_missing_files_and_full_directories_are_errors(place: tuple[Disk, str]) -> None:
    """
    Opening, deleting or renaming what is missing raises FileNotFoundError; a full directory
    stays.
    """
    disk, root = place
    disk.make_dirs(f"{root}/d/e")

    for attempt in (
        lambda: disk.open(f"{root}/a"),
        lambda: disk.open(f"{root}/no/a", create=True),
        lambda: disk.delete(f"{root}/a"),
        lambda: disk.rename(f"{root}/a", f"{root}/b"),
    ):
        with pytest.raises(FileNotFoundError):
            attempt()
    with pytest.raises(OSError, match="not empty"):
        disk.delete(f"{root}/d")


def test_a_deleted_file_can_still_be_read_by_who_has_it_open(place: tuple[Disk, str]) -> None:
    """
    Whoever has a file open can read it after its deletion.
    """
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"still here", 0)
    disk.delete(f"{root}/a")

    assert file.pread(99, 0) == b"still here"


def test_a_lock_excludes_a_second_one_and_names_the_holder(place: tuple[Disk, str]) -> None:
    """
    A second lock on a path fails with the process that holds the first one, until that is
    released.
    """
    disk, root = place
    lock = disk.lock(f"{root}/lock")
    with pytest.raises(LockedError, match=r"pid|process \d+"):
        disk.lock(f"{root}/lock")
    lock.release()
    disk.lock(f"{root}/lock").release()


def test_space_is_reported(place: tuple[Disk, str]) -> None:
    """
    A disk reports its free bytes and how full it is.
    """
    disk, root = place
    disk.sync_all(root)

    assert disk.free_bytes(root) > 0
    assert 0 <= disk.used_ratio(root) <= 1


def test_another_process_is_refused_and_told_who_holds_the_lock(tmp_path: Path) -> None:
    """The kind of lock that Java takes too: a record lock on the first byte."""
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from gantrymq.base.disk import OsDisk\n"
            "lock = OsDisk().lock(sys.argv[1]); print('held', flush=True); sys.stdin.read()",
            str(tmp_path / "lock"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match=f"process {holder.pid}"):
            OsDisk().lock(str(tmp_path / "lock"))
        assert (tmp_path / "lock").read_text().startswith("lock")
    finally:
        holder.communicate(timeout=20)
    OsDisk().lock(str(tmp_path / "lock")).release()


def test_what_the_system_has_forgotten_is_cold_until_it_is_read(tmp_path: Path) -> None:
    """Some file systems never forget; then the data simply is warm."""
    file = OsDisk().open(str(tmp_path / "a"), create=True)
    data = bytes(range(256)) * 4096
    file.pwrite(data, 0)
    file.sync()
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    assert file.pread_warm(len(data), 0) in (None, data)
    assert file.pread(len(data), 0) == data
    assert file.pread_warm(len(data), 0) == data


def test_text_is_saved_with_a_backup_and_loaded_again(place: tuple[Disk, str]) -> None:
    """
    `save_text` keeps the text before in `.bak`, and `load_text` falls back to it.
    """
    disk, root = place
    path = f"{root}/config/topics.json"
    assert load_text(disk, path) is None
    save_text(disk, path, "one")
    save_text(disk, path, "two")

    assert load_text(disk, path) == "two"
    assert load_text(disk, f"{path}.bak") == "one"
    assert sorted(disk.list(f"{root}/config")) == ["topics.json", "topics.json.bak"]
    disk.delete(path)
    assert load_text(disk, path) == "one"
    save_text(disk, path, "  ")
    assert load_text(disk, path) == "one", "an empty file is no table"
    assert load_text(disk, path, usable=lambda text: text == "x") is None


def test_a_power_cut_while_saving_leaves_the_old_or_the_new_text() -> None:
    """After every single operation of a save, whatever survives."""
    for seed in range(40):
        disk, random = MemoryDisk(), Random(seed)
        save_text(disk, "config/a", "old " * 500)
        left: list[MemoryDisk] = []
        disk.after_each = lambda disk=disk, left=left, random=random: left.append(
            disk.image(random)
        )
        save_text(disk, "config/a", "new " * 700)

        assert {load_text(one, "config/a") for one in left} <= {"old " * 500, "new " * 700}
        assert load_text(left[-1], "config/a") == "new " * 700


# What only the cruel disk can do


def unsynced() -> MemoryDisk:
    disk = MemoryDisk()
    file = disk.open("a", create=True)
    file.pwrite(b"1" * 3 * PAGE, 0)
    file.sync()
    disk.sync_dir("")
    file.pwrite(b"2" * 3 * PAGE, 0)
    return disk


def test_what_is_synced_survives_every_power_cut() -> None:
    """
    A power cut keeps all that was synced, whatever the seed.
    """
    disk = unsynced()
    disk.open("a").sync()
    for seed in range(20):
        assert disk.image(Random(seed)).contents() == {"a": b"2" * 3 * PAGE}


def test_what_is_not_synced_survives_in_any_mixture_of_sectors() -> None:
    """
    A power cut keeps any mixture of old and new sectors, but never half a sector.
    """
    disk = unsynced()
    seen = set()
    for seed in range(200):
        data = disk.image(Random(seed)).contents()["a"]
        sectors = [data[at : at + SECTOR] for at in range(0, len(data), SECTOR)]
        assert all(len(set(sector)) == 1 for sector in sectors), "a sector is never torn"
        seen.add(b"".join(sector[:1] for sector in sectors))

    assert {b"1" * 24, b"2" * 24} < seen
    assert len(seen) > 50


def test_an_unsynced_name_may_be_missing() -> None:
    """
    A new file can be lost until its directory, and the directory's own name, are synced.
    """
    disk = MemoryDisk()
    disk.make_dirs("d")
    file = disk.open("d/a", create=True)
    file.pwrite(b"data", 0)
    file.sync()
    kept = {bool(disk.image(Random(seed)).exists("d/a")) for seed in range(30)}
    assert kept == {True, False}

    disk.sync_dir("d")
    kept = {bool(disk.image(Random(seed)).exists("d/a")) for seed in range(30)}
    assert kept == {True, False}, "the directory itself has no durable name yet"
    disk.sync_dir("")
    assert {bool(disk.image(Random(seed)).exists("d/a")) for seed in range(30)} == {True}


def test_an_unsynced_deletion_may_be_undone() -> None:
    """
    A deletion can be undone by a power cut, but not by a kill, until its directory is synced.
    """
    disk = MemoryDisk()
    disk.open("a", create=True)
    disk.sync_all("")
    disk.delete("a")

    assert {disk.image(Random(seed)).exists("a") for seed in range(30)} == {True, False}
    assert not disk.after_kill().exists("a")


def test_a_full_disk_says_so_and_keeps_what_fitted() -> None:
    """
    A write beyond the capacity fails with ENOSPC and keeps the part that fitted.
    """
    disk = MemoryDisk(capacity=4 * PAGE)
    file = disk.open("a", create=True)
    with pytest.raises(OSError) as caught:
        file.allocate(5 * PAGE)
    assert caught.value.errno == errno.ENOSPC

    disk = MemoryDisk(capacity=4 * PAGE)
    file = disk.open("a", create=True)
    with pytest.raises(OSError):
        file.pwrite(b"x" * 5 * PAGE, 0)
    assert file.size() == 4 * PAGE
    assert disk.used_ratio("") == 1.0
