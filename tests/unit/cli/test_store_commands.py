"""`gantry store`: what it prints, and with which code it ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from storekeeping import TOPIC, flip, keep_store, message, patch, records_in

from gantrymq.base.disk import OsDisk
from gantrymq.cli.main import main
from gantrymq.protocol.record import decode_record

COUNT = 12


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of ours, stopped properly."""
    keep_store(tmp_path / "store", [
        message(number % 3, f"body {number}", tags="t", keys=f"k{number}", unique=f"U{number}")
        for number in range(COUNT)
    ])  # fmt: skip
    return tmp_path / "store"


def gantry(*words: Any) -> Result:
    return CliRunner().invoke(main, ["store", *map(str, words)])


def rows(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def damage(store: Path, queue_id: int = 1, number: int = 1) -> None:
    at = decode_record(records_in(store, queue_id)[number]).physical_offset
    flip(store / "commitlog" / f"{0:020d}", at + 90)


@pytest.mark.parametrize("java", [False, True], ids=["ours", "java"])
def test_stat_shows_log_queues_index_and_checkpoint(store: Path, java: bool) -> None:
    """Also of a store that a Java broker wrote last, and whose checkpoint has its times only."""
    if java:
        patch(store / "checkpoint", 24, bytes(200))

    result = gantry("stat", store, "-o", "json", "--count", "--quiet")

    assert 0 == result.exit_code, result.output
    found = json.loads(result.stdout)
    whole = found["store"][0]
    assert ("RocketMQ" if java else "GantryMQ") == whole["writtenBy"]
    assert ("stopped", [], 0, COUNT) == (
        whole["state"], whole["marks"], whole["logFirst"], whole["records"]
    )  # fmt: skip
    assert whole["logEnd"] == whole["recordBytes"]
    assert 0 < whole["firstStored"] < whole["lastStored"]
    assert [(TOPIC, queue, 0, 4) for queue in range(3)] == [
        (row["topic"], row["queueId"], row["minOffset"], row["maxOffset"])
        for row in found["queues"]
    ]
    assert [2 * COUNT] == [row["entries"] for row in found["index"]]
    assert (None if java else whole["logEnd"]) == found["checkpoint"][0]["dispatched"]


def test_stat_shows_who_has_it_open(store: Path) -> None:
    """A store that is open is read, too."""
    lock = OsDisk().lock(f"{store}/lock")
    try:
        result = gantry("stat", store)
    finally:
        lock.release()

    assert 0 == result.exit_code, result.output
    assert "open (locked by this process" in result.stdout


def test_verify_tells_what_a_finding_means_and_what_repair_does(store: Path) -> None:
    """Exit code 1 for damage, 0 for none; nothing is written."""
    assert 0 == gantry("verify", store, "--quiet").exit_code
    damage(store)

    result = gantry("verify", store, "-o", "jsonl", "--quiet")

    assert 1 == result.exit_code
    (finding,) = [row for row in rows(result) if row.get("level") == "wrong"]
    assert ("crc", f"{store}/commitlog/{0:020d}") == (finding["kind"], finding["file"])
    assert "not what was sent" in finding["means"]
    assert "empty record" in finding["repair"]


def test_a_repair_is_a_plan_until_it_is_told_to_be_done(store: Path) -> None:
    """First the plan with exit code 1, then --yes, then there is nothing left."""
    damage(store)

    plan = gantry("repair", store, "-o", "json", "--quiet")
    again = gantry("repair", store, "-o", "json", "--quiet", "--dry-run")
    done = gantry("repair", store, "--yes", "--quiet")
    after = gantry("repair", store, "--quiet")

    assert (1, 1, 0, 0) == tuple(each.exit_code for each in (plan, again, done, after))
    assert plan.stdout == again.stdout
    (lost,) = json.loads(plan.stdout)["lost"]
    assert (TOPIC, 1, 1, 1) == tuple(lost[name] for name in ("topic", "queueId", "offset", "count"))
    assert "1 message lost; done, saved in" in done.stderr
    assert "nothing to repair" in after.stderr
    assert 0 == gantry("verify", store, "--quiet").exit_code


def test_a_store_that_is_open_is_not_repaired(store: Path) -> None:
    """Another process holds its lock."""
    held = subprocess.Popen(
        [sys.executable, "-c",
         "import sys\nfrom gantrymq.base.disk import OsDisk\n"
         "lock = OsDisk().lock(sys.argv[1]); print(flush=True); sys.stdin.read()",
         f"{store}/lock"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with held:
        assert held.stdout is not None
        held.stdout.readline()
        result = gantry("repair", store, "--yes", "--quiet")
        reading = gantry("dump", store, "--limit", 1, "-o", "jsonl")
        held.communicate(b"", timeout=30)

    assert 1 == result.exit_code
    assert f"a broker runs on {store}: stop it first" in result.stderr
    assert "process " in result.stderr
    assert 0 == reading.exit_code


def test_records_are_dumped_by_place_queue_and_key(store: Path) -> None:
    """As JSON with everything that the record has."""
    everything = rows(gantry("dump", store, "-o", "jsonl"))
    behind = everything[4]["position"]

    def bodies(*words: Any) -> list[str]:
        return [row["body"] for row in rows(gantry("dump", store, "-o", "jsonl", *words))]

    assert [f"body {number}" for number in range(COUNT)] == [row["body"] for row in everything]
    assert ["body 4"] == bodies("--from", behind, "--to", behind + 1)
    assert ["body 4", "body 5"] == bodies("--from", behind - 7, "--limit", 2)
    assert ["body 4", "body 7"] == bodies("--topic", TOPIC, "--queue", 1, "--from", 1, "--to", 3)
    assert ["body 8"] == bodies("--key", "k8") == bodies("--topic", TOPIC, "--key", "U8")
    assert [] == bodies("--topic", "other")
    assert {"TAGS": "t", "KEYS": "k0", "UNIQ_KEY": "U0"}.items() <= everything[0][
        "properties"
    ].items()


@pytest.mark.parametrize(
    ("name", "first"),
    [
        (f"consumequeue/{TOPIC}/1/{0:020d}", {"queueOffset": 0, "position": 1}),
        ("index", {"entry": 1, "previous": 0}),
        ("checkpoint", {"field": "log_ms"}),
    ],
)
def test_single_files_are_dumped(store: Path, name: str, first: dict[str, Any]) -> None:
    """Queue entries, index entries, the checkpoint."""
    if name == "index":
        name = str(sorted((store / "index").iterdir())[0])

    result = gantry("dump", store, "--file", name, "-o", "jsonl")

    assert 0 == result.exit_code, result.output
    found = rows(result)[0]
    if "position" in first:
        first["position"] = decode_record(records_in(store, 1)[0]).physical_offset
    assert first.items() <= found.items()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["verify", "nowhere"], 2, "does not exist"),
        (["stat", "{empty}"], 1, "is no store"),
        (["dump", "{store}", "--queue", "1"], 2, "--queue needs --topic"),
        (["repair", "{store}", "--yes", "--dry-run"], 2, "contradict"),
        (["dump", "{store}", "--file", "config"], 1, "is no file of"),
    ],
)
def test_misuse_is_told(store: Path, words: list[str], code: int, said: str) -> None:
    """In one line, with exit code 2 for usage."""
    (store / "empty").mkdir()

    result = gantry(*(word.format(store=store, empty=store / "empty") for word in words))

    assert code == result.exit_code
    assert said in result.stderr
