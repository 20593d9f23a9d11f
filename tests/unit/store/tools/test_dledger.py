"""The store of a member of a raft group of RocketMQ 5.3.3: read, checked and taken over."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from storekeeping import contents, flip, keep_store, message, unpack_store

from gantrymq.base.disk import OsDisk
from gantrymq.base.errors import ConfigError
from gantrymq.broker.identity import check_kind_of_store
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.store.audit.whole import audit_store
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.tools.dledger import DLedgerFolder, dledger_of, verify_dledger
from gantrymq.store.tools.dump import RecordQuery, records

TOPIC = "FromDLedger"
SIZES = {
    "segment_bytes": 32768, "queue_file_entries": 64, "index_slots": 100, "index_entries": 400,
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A copy of what the leader left."""
    return unpack_store("dledger-5.3.3", tmp_path / "store")


def opened(store: Path) -> DLedgerFolder:
    ledger = dledger_of(store)
    assert ledger is not None
    return DLedgerFolder(store, ledger)


def gantry(*words: Any) -> "subprocess.CompletedProcess[str]":
    """The command as a process: click's own runner mixes or loses stderr in its older releases."""
    command = [sys.executable, "-c", "from gantrymq.cli.main import main; main()", "store", *words]
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=60, check=False
    )


def kinds(store: Path) -> set[str]:
    return {each.kind for each in verify_dledger(opened(store)).findings if each.level == "wrong"}


def data_file(store: Path) -> Path:
    return store / "dledger-n1" / "data" / f"{0:020d}"


def test_every_entry_fits_its_record_index_and_queue(store: Path) -> None:
    """What a Java broker wrote is sound, and nothing is written."""
    before = contents(store)

    found = verify_dledger(opened(store))

    assert [] == found.findings
    assert 86 == found.covered["entries"]
    assert found.covered["records"] == found.covered["records with their queue entry"] > 80
    assert found.covered["keys with their index entry"] > 100
    assert before == contents(store)


@pytest.mark.parametrize(
    ("at", "kind"),
    [(8, "dledger-entry"), (30, "dledger-entry"), (48 + 90, "dledger-record")],
    ids=["number", "place", "body"],
)
def test_damage_of_an_entry_is_found_and_passed_over(store: Path, at: int, kind: str) -> None:
    """The entries behind it are checked all the same."""
    second = 0x115
    flip(data_file(store), second + at)

    found = verify_dledger(opened(store))

    assert kind in {each.kind for each in found.findings}
    assert found.covered["entries"] >= 85


def test_a_damaged_unit_of_the_index_is_found(store: Path) -> None:
    """DLedger finds entries by it."""
    flip(store / "dledger-n1" / "index" / f"{0:020d}", 5 * 32 + 10)

    assert {"dledger-index"} == kinds(store)


def test_commands_see_that_the_log_is_dledgers(store: Path) -> None:
    """The same commands as for every store."""
    stat = json.loads(gantry("stat", store, "-o", "json").stdout)
    verify = gantry("verify", store, "--quiet")
    dump = gantry("dump", store, "-o", "jsonl", "--key", "k7")

    assert "RocketMQ (DLedger)" == stat["store"][0]["writtenBy"]
    assert (86, 82, 1) == tuple(
        stat["dledger"][0][name] for name in ("entries", "committedIndex", "term")
    )
    assert 0 == verify.returncode, verify.output
    (row,) = map(json.loads, dump.stdout.splitlines())
    assert (TOPIC, "t1", "order 7" + "." * 140) == (row["topic"], row["tags"], row["body"])


def test_an_ordinary_store_is_made_of_it(store: Path, tmp_path: Path) -> None:
    """Every committed message at its queue offset, with keys and tables; the source stays."""
    before, target = contents(store), tmp_path / "new"

    planned = gantry("migrate", store, target, "--dry-run", "-o", "json")
    assert not target.exists()
    done = gantry("migrate", store, target, "-o", "json")

    assert (0, 0) == (planned.returncode, done.returncode), done.output
    assert planned.stdout == done.stdout
    assert 3 == json.loads(done.stdout)[0]["uncommittedEntries"]
    assert before == contents(store)
    assert [] == audit_store(str(target)).findings
    assert (store / "config" / "topics.json").read_bytes() == (
        target / "config" / "topics.json"
    ).read_bytes()
    assert taken(opened(store).folder) == taken(StoreFolder(str(target)))


def taken(folder: StoreFolder) -> dict[tuple[int, int], str]:
    return {
        (queue_id, each.queue_offset): each.body.decode()
        for queue_id in (0, 1)
        for each in records(folder, RecordQuery(topic=TOPIC, queue_id=queue_id))
    }


def test_a_broker_goes_on_with_the_new_store(store: Path, tmp_path: Path) -> None:
    """New messages follow the old ones of their queue."""
    assert 0 == gantry("migrate", store, tmp_path / "new", "--all").returncode

    keep_store(tmp_path / "new", [message(1, "next", topic=TOPIC)], **SIZES)  # type: ignore[arg-type]

    found = taken(StoreFolder(str(tmp_path / "new")))
    assert "next" == found[1, 36]
    assert 31 + 36 + 1 == len(found)
    assert [] == audit_store(str(tmp_path / "new")).findings


def test_damage_is_not_taken_over(store: Path, tmp_path: Path) -> None:
    """Another member has the same log."""
    flip(data_file(store), 0x115 + 48 + 90)

    planned = gantry("migrate", store, tmp_path / "new", "--dry-run")
    refused = gantry("migrate", store, tmp_path / "new")

    assert (1, 1) == (planned.returncode, refused.returncode)
    assert "another member" in refused.stderr
    assert not (tmp_path / "new").exists()


def test_a_store_without_dledger_and_a_full_target_are_refused(store: Path, tmp_path: Path) -> None:
    """In one line each."""
    keep_store(tmp_path / "plain", [message(0, "x")])

    plain = gantry("migrate", tmp_path / "plain", tmp_path / "new")
    full = gantry("migrate", store, tmp_path / "plain")

    assert "has no log of DLedger" in plain.stderr
    assert "is not empty" in full.stderr


def test_a_broker_refuses_the_store_and_says_what_to_do(store: Path) -> None:
    """It would begin a log beside the one that is there."""
    config = BrokerConfig(store_path_root_dir=str(store))

    with pytest.raises(ConfigError, match="gantry store migrate"):
        check_kind_of_store(config, OsDisk())
