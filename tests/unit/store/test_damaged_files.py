"""Each kind of file of a stopped store is damaged, cut, lost or lengthened; nothing is silent.

A start repairs it, refuses it with the name of the file, or tells in the log what it goes without;
`gantry store verify` finds all that a start does not look at.
"""

import logging
from pathlib import Path
from typing import Any

import pytest
from storekeeping import TOPIC, StepClock, flip, keep_store, message

from gantrymq.store.audit.whole import audit_store
from gantrymq.store.errors import LayoutError
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.tools.dump import RecordQuery, records

COUNT, QUEUES = 60, 3
EXT = {"marker": lambda topic, found: b"\x01" * 14, "ext_file_bytes": 512}
REFUSED, TOLD = "refused", "told"
WHOLE = "whole"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Several files of each kind, stopped properly."""
    keep_store(tmp_path, [
        message(n % QUEUES, f"{n:03d}" * 60, tags="t", keys=f"k{n}") for n in range(COUNT)
    ], **EXT)  # fmt: skip
    return tmp_path


def chosen(store: Path, part: str) -> Path:
    """The file in the middle of each kind."""
    return {
        "log": store / "commitlog" / f"{8192:020d}",
        "queues": store / "consumequeue" / TOPIC / "1" / f"{160:020d}",
        "index": sorted((store / "index").iterdir())[0],
        "units": store / "consumequeue_ext" / TOPIC / "1" / f"{0:020d}",
        "checkpoint": store / "checkpoint",
    }[part]


def harm(path: Path, fault: str) -> None:
    """Do it to the file."""
    if fault == "flipped":
        flip(path, {"checkpoint": 40}.get(path.name, 90))
    elif fault == "missing":
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2 + 3] if fault == "cut" else data + b"x" * 20)


def delivered(store: Path) -> int:
    folder = StoreFolder(str(store))
    return sum(
        1
        for queue_id in range(QUEUES)
        for _ in records(folder, RecordQuery(topic=TOPIC, queue_id=queue_id))
    )


CASES = [
    ("log", "flipped", {"crc"}, COUNT + 1),
    ("log", "cut", {"log-size"}, REFUSED),
    ("log", "missing", {"log-gap"}, TOLD),
    ("log", "longer", {"log-size"}, REFUSED),
    ("queues", "flipped", {"entry-size", "entry-place", "entry-tag"}, WHOLE),
    ("queues", "cut", {"queue-size"}, REFUSED),
    ("queues", "missing", {"queue-gap"}, TOLD),
    ("queues", "longer", {"queue-size"}, REFUSED),
    ("index", "flipped", {"index-slot", "index-chain", "index-missing"}, WHOLE),
    ("index", "cut", {"index-size"}, REFUSED),
    ("index", "missing", {"checkpoint-index"}, WHOLE),
    ("index", "longer", {"index-size"}, REFUSED),
    ("units", "flipped", {"ext-unit", "ext-none"}, WHOLE),
    ("units", "cut", {"ext-none"}, WHOLE),
    ("units", "missing", {"ext-none"}, WHOLE),
    ("units", "longer", set(), WHOLE),
    ("checkpoint", "flipped", {"checkpoint-page"}, WHOLE),
    ("checkpoint", "cut", {"checkpoint-page"}, WHOLE),
    ("checkpoint", "missing", {"checkpoint-none"}, WHOLE),
    ("checkpoint", "longer", {"checkpoint-page"}, WHOLE),
]


@pytest.mark.parametrize(("part", "fault", "kinds", "start"), CASES)
def test_a_damaged_file_is_noticed(
    store: Path, caplog: Any, part: str, fault: str, kinds: set[str], start: Any
) -> None:
    """By the check of the whole store, and by a start as the table says."""
    caplog.set_level(logging.WARNING, "gantrymq.store")
    path = chosen(store, part)
    harm(path, fault)

    found = {each.kind for each in audit_store(str(store)).findings}
    assert bool(found & kinds) == bool(kinds), found

    if start == REFUSED:
        with pytest.raises(LayoutError, match=path.name):
            keep_store(store, [message(0, "later")], **EXT)
        return
    keep_store(store, [message(0, "later")], **EXT)
    if start == TOLD:
        assert "gantry store repair" in caplog.text
        assert delivered(store) < COUNT
    elif part != "queues" or fault != "flipped":
        assert COUNT + 1 == delivered(store)


def test_a_clock_that_goes_back_does_not_take_store_times_along(tmp_path: Path) -> None:
    """Searches by time go by bisection: times of a store never fall, also over a restart."""
    clock = StepClock()
    keep_store(tmp_path, [message(0, "one")], clock=clock)
    clock.ms -= 3_600_000
    keep_store(tmp_path, [message(0, "two")], clock=clock)

    times = [each.store_ms for each in records(StoreFolder(str(tmp_path)), RecordQuery())]

    assert times == sorted(times)
    assert [] == audit_store(str(tmp_path)).findings
