"""A repair keeps every message that is not damaged itself, and tells which are lost."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from storekeeping import TOPIC, contents, flip, keep_store, message, patch, records_in

from gantrymq.protocol.record import decode_record
from gantrymq.store.audit.whole import audit_store
from gantrymq.store.errors import StoreError
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.tools import repair as repairs
from gantrymq.store.tools.dump import RecordQuery, records
from gantrymq.store.tools.repair import carry_out, locked
from gantrymq.store.tools.repair_plan import RepairPlan, plan_repair

COUNT, QUEUES, SEGMENT = 60, 3, 8192


def body(number: int) -> str:
    return f"{number:03d}" * 60


def orders() -> list[Any]:
    return [
        message(number % QUEUES, body(number), tags=f"t{number % 4}", keys=f"k{number}")
        for number in range(COUNT)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of several log, queue and index files, stopped properly."""
    keep_store(tmp_path / "store", orders())
    return tmp_path / "store"


def log_file(store: Path, number: int) -> Path:
    return sorted((store / "commitlog").iterdir())[number]


def place_of(store: Path, number: int) -> tuple[Path, int]:
    """The log file of a message, and the byte where its record begins."""
    found = decode_record(records_in(store, number % QUEUES)[number // QUEUES])
    at = found.physical_offset
    return store / "commitlog" / f"{at - at % SEGMENT:020d}", at % SEGMENT


def repaired(store: Path) -> RepairPlan:
    with locked(str(store)):
        plan = plan_repair(str(store))
        carry_out(plan)
    return plan


def wrong(store: Path) -> list[str]:
    found = audit_store(str(store)).findings
    return [f"{each.kind} {each.text}" for each in found if each.level == "wrong"]


def bodies(store: Path) -> set[str]:
    """What consumers of all queues get."""
    folder = StoreFolder(str(store))
    return {
        each.body.decode()
        for queue_id in range(QUEUES)
        for each in records(folder, RecordQuery(topic=TOPIC, queue_id=queue_id))
    }


def opened(store: Path) -> None:
    """Start and stop the store, with one more message."""
    keep_store(store, [message(0, "later")])


def all_but(*numbers: int) -> set[str]:
    return {body(number) for number in range(COUNT) if number not in numbers}


def test_a_sound_store_needs_no_repair(store: Path) -> None:
    """Nothing is planned and nothing is written."""
    before = contents(store)

    plan = repaired(store)

    assert ([], [], []) == (plan.steps, plan.lost, plan.left)
    assert before.keys() == contents(store).keys() - {"lock"} | {"lock"}
    assert {**before, "lock": b""} == {**contents(store), "lock": b""}


@pytest.mark.parametrize("field", [100, 0, 4, 30, 84], ids=["body", "size", "magic", "at", "parts"])
def test_damage_in_the_middle_loses_one_message(store: Path, field: int) -> None:
    """What stands behind it is kept and delivered, now and after the next start."""
    file, at = place_of(store, 20)
    was = file.read_bytes()
    flip(file, at + field)
    bad = file.read_bytes()

    plan = repaired(store)

    assert [(TOPIC, 2, 6, 1)] == [(e.topic, e.queue_id, e.offset, e.count) for e in plan.lost]
    assert ["fill", "rebuild"] == [each.step for each in plan.steps]
    assert [] == wrong(store)
    assert all_but(20) == bodies(store)
    assert bad == (store / "repair" / "1" / "commitlog" / file.name).read_bytes() != was
    opened(store)
    assert [] == wrong(store)
    assert all_but(20) | {"later"} == bodies(store)


def test_queue_offsets_stay_after_a_loss(store: Path) -> None:
    """Progress of groups still means the same messages; the hole has no message."""
    file, at = place_of(store, 20)
    flip(file, at + 100)

    repaired(store)

    folder = StoreFolder(str(store))
    found = list(records(folder, RecordQuery(topic=TOPIC, queue_id=2)))
    assert [n for n in range(COUNT // QUEUES) if n != 6] == [each.queue_offset for each in found]


def test_the_hole_of_a_lost_message_does_not_hide_what_is_before_it(tmp_path: Path) -> None:
    """A start looks for the first entry by bisection, and the middle entry is the lost one."""
    keep_store(tmp_path, [message(0, body(number)) for number in range(9)], queue_file_entries=64)
    found = decode_record(records_in(tmp_path, 0)[4])
    flip(log_file(tmp_path, found.physical_offset // SEGMENT), found.physical_offset % SEGMENT + 99)

    repaired(tmp_path)
    keep_store(tmp_path, [message(0, "later")], queue_file_entries=64)

    folder = StoreFolder(str(tmp_path))
    files = folder.queue(TOPIC, 0)
    assert 0 == files.first_at(folder.log.min, files.written())
    got = [each.queue_offset for each in records(folder, RecordQuery(topic=TOPIC, queue_id=0))]
    assert [0, 1, 2, 3, 5, 6, 7, 8, 9] == got


def test_a_damaged_tail_is_cut_and_saved(store: Path) -> None:
    """No record follows it, so that the log ends before it."""
    file, at = place_of(store, COUNT - 1)
    flip(file, at + 100)

    plan = repaired(store)

    assert ["cut", "rebuild"] == [each.step for each in plan.steps]
    assert [(0 + (COUNT - 1) % QUEUES, (COUNT - 1) // QUEUES)] == [
        (each.queue_id, each.offset) for each in plan.lost
    ]
    assert not (store / "cut_at").exists()
    assert [] == wrong(store)
    opened(store)
    assert all_but(COUNT - 1) | {"later"} == bodies(store)


def lost_numbers(plan: RepairPlan) -> set[int]:
    return {
        (each.offset + n) * QUEUES + each.queue_id for each in plan.lost for n in range(each.count)
    }


def in_file(store: Path, number: int) -> set[int]:
    name = log_file(store, number).name
    return {n for n in range(COUNT) if place_of(store, n)[0].name == name}


def test_a_cut_log_file_is_filled_up(store: Path) -> None:
    """Its records up to the cut stay, and so do those of the files behind it."""
    there = in_file(store, 1)
    file = log_file(store, 1)
    file.write_bytes(file.read_bytes()[:5000])

    plan = repaired(store)

    lost = lost_numbers(plan)
    assert ["grow", "end-mark", "rebuild"] == [each.step for each in plan.steps]
    assert lost
    assert lost < there
    assert [] == wrong(store)
    opened(store)
    assert all_but(*lost) | {"later"} == bodies(store)


def test_a_missing_log_file_is_bridged(store: Path) -> None:
    """A broker would forget everything before the gap."""
    there = in_file(store, 1)
    log_file(store, 1).unlink()

    plan = repaired(store)

    assert ["bridge", "rebuild"] == [each.step for each in plan.steps]
    assert [] == wrong(store)
    opened(store)
    assert all_but(*there) | {"later"} == bodies(store)


def test_lost_sectors_at_the_end_of_a_file_are_passed_over(store: Path) -> None:
    """The end mark went with the last records of the file."""
    file = log_file(store, 1)
    patch(file, 6000, bytes(SEGMENT - 6000))

    plan = repaired(store)

    assert "end-mark" in [each.step for each in plan.steps]
    assert [] == wrong(store)
    opened(store)
    assert all_but(*lost_numbers(plan)) | {"later"} == bodies(store)


@pytest.mark.parametrize("part", ["queue", "index", "checkpoint"])
def test_what_is_derived_is_built_anew(store: Path, part: str) -> None:
    """Nothing is lost; the old files are kept."""
    path = {
        "queue": store / "consumequeue" / TOPIC / "1" / f"{0:020d}",
        "index": sorted((store / "index").iterdir())[0],
        "checkpoint": store / "checkpoint",
    }[part]
    flip(path, 40)

    plan = repaired(store)

    assert (["rebuild"], []) == ([each.step for each in plan.steps], plan.lost)
    assert [] == wrong(store)
    assert all_but() == bodies(store)
    opened(store)


@pytest.mark.parametrize("has_backup", [True, False])
def test_an_unreadable_table_gives_way_to_its_backup(store: Path, has_backup: bool) -> None:
    """What could not be read is kept aside, for whoever wants to look at it."""
    table = store / "config" / "topics.json"
    table.write_text('{"topicConfigTable":{')
    if has_backup:
        table.with_name("topics.json.bak").write_text('{"topicConfigTable":{}}')

    plan = repaired(store)

    assert ["restore-table" if has_backup else "drop-table"] == [each.step for each in plan.steps]
    assert has_backup == table.exists()
    assert not has_backup or table.read_text() == '{"topicConfigTable":{}}'
    saved = store / "repair" / "1" / "config" / "topics.json"
    assert '{"topicConfigTable":{' == saved.read_text()
    assert [] == wrong(store)


def test_a_broker_that_died_leaves_damage_before_records(tmp_path: Path) -> None:
    """The next start would cut the log at the damage, and everything behind it."""
    store = tmp_path / "store"
    keep_store(store, orders()[:30])
    keep_store(store, orders()[30:], stays_open=True)
    old = (store / "checkpoint").read_bytes()
    keep_store(tmp_path / "other", orders()[:30])
    patch(store / "checkpoint", 0, (tmp_path / "other" / "checkpoint").read_bytes())
    file, at = place_of(store, 40)
    flip(file, at + 100)
    assert old != (store / "checkpoint").read_bytes()
    assert any("records follow" in each for each in wrong(store))

    repaired(store)

    assert [] == wrong(store)
    opened(store)
    assert all_but(40) | {"later"} == bodies(store)


def test_a_torn_tail_is_left_to_the_next_start(tmp_path: Path) -> None:
    """That is what recovery is for; nothing was acknowledged for good."""
    keep_store(tmp_path, orders()[:5], stays_open=True)
    end = audit_end(tmp_path)
    patch(log_file(tmp_path, 0), end, b"\0\0\1\0" + b"\xda\xa3\x20\xa7" + b"x" * 50)

    assert [] == plan_repair(str(tmp_path)).steps


def audit_end(store: Path) -> int:
    found = StoreFolder(str(store))
    last = list(records(found, RecordQuery()))[-1]
    return last.physical_offset + last.size


def test_the_log_of_a_raft_member_is_not_changed(store: Path) -> None:
    """Its bytes are its group's, to the byte; the group gives it everything again."""
    (store / "raft").mkdir()
    (store / "raft" / "state.json").write_text('{"group":"g","me":"n0"}')
    (store / "raft" / "epochs.json").write_text('{"epochs":[{"term":1,"offset":0}]}')
    file, at = place_of(store, 20)
    flip(file, at + 100)

    plan = plan_repair(str(store))

    assert [] == plan.steps
    assert any("raft group" in each for each in plan.left)


def test_a_store_that_is_open_is_refused(store: Path) -> None:
    """Two programs must not write to one log."""
    with locked(str(store)), pytest.raises(StoreError, match="stop it first"):
        locked(str(store)).__enter__()


class _Killed(BaseException):
    """As if the process had ended."""


@pytest.mark.parametrize("step", ["_save", "_change_log", "_rebuild"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_repair_that_was_killed_is_run_again(
    store: Path, monkeypatch: Any, step: str, after: bool
) -> None:
    """Whatever was done is found, and the rest is done."""
    file, at = place_of(store, 20)
    flip(file, at + 100)
    last, at = place_of(store, COUNT - 1)
    flip(last, at + 100)
    (store / "config" / "topics.json").write_text("{")
    (store / "config" / "topics.json.bak").write_text("{}")
    real: Callable[..., Any] = getattr(repairs, step)

    def dies(*args: Any) -> Any:
        if after:
            real(*args)
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(repairs, step, dies)
        with pytest.raises(_Killed):
            repaired(store)

    repaired(store)

    assert [] == wrong(store)
    assert all_but(20, COUNT - 1) == bodies(store)
    opened(store)


def test_a_broker_that_starts_on_half_a_cut_loses_nothing_more(
    store: Path, monkeypatch: Any
) -> None:
    """The old checkpoint reaches beyond the cut: messages behind it would leave a gap."""
    last, at = place_of(store, COUNT - 1)
    flip(last, at + 100)

    def dies(*args: Any) -> Any:
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(repairs, "_rebuild", dies)
        with pytest.raises(_Killed):
            repaired(store)
    opened(store)

    assert [] == wrong(store)
    assert all_but(COUNT - 1) | {"later"} == bodies(store)


def test_a_log_elsewhere_is_repaired_there(tmp_path: Path) -> None:
    """storePathCommitLog may be on another disk."""
    store, log = tmp_path / "store", tmp_path / "log"
    keep_store(store, orders(), log_directory=str(log))
    shutil.rmtree(store / "consumequeue" / TOPIC / "1")
    (store / "consumequeue" / TOPIC / "1").mkdir()

    with locked(str(store)):
        carry_out(plan_repair(str(store), str(log)))

    assert [] == audit_store(str(store), str(log)).findings
