"""The table of faults is complete, names tests that exist, and the page is printed from it."""

import ast
import errno
from pathlib import Path

import fault_table
import pytest
from fault_table import FAULTS, OTHERS

from gantrymq.access.user_rules import UserRules
from gantrymq.access.user_table import UserTable
from gantrymq.base.offload import InlineOffload
from gantrymq.broker.publishing.journal import load_writers
from gantrymq.broker.tables.registry import TopicTable, load_table
from gantrymq.broker.waiting.timer.checkpoint import load_check
from gantrymq.nameserver.kv import KvConfig
from gantrymq.replication.group.files import MemberFiles
from gantrymq.store.recovery import checkpoint
from gantrymq.store.version import check_version
from gantrymq.testing.disk import MemoryDisk

ROOT = Path(__file__).parents[2]
PRINT = ".venv/bin/python tests/kits/fault_table.py > docs/faults.md"


def test_every_file_has_every_fault() -> None:
    """No cell is left out, and none is about something else."""
    parts, rows = fault_table.load()

    found = [(row.part, row.fault) for row in rows if row.part != OTHERS]
    assert [(part, fault) for part in parts if part != OTHERS for fault in FAULTS] == found
    assert all(row.text for row in rows)


@pytest.mark.parametrize("test", sorted({row.test for row in fault_table.load()[1]}))
def test_every_cell_names_a_test_that_exists(test: str) -> None:
    """A table that nobody checks is a wish."""
    path, _, name = test.partition("::")
    assert (ROOT / path).exists()
    if name:
        nodes = ast.walk(ast.parse((ROOT / path).read_text()))
        assert name in {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def test_the_page_is_printed_from_the_table() -> None:
    """Print it anew as its module says."""
    assert fault_table.page() == (ROOT / "docs" / "faults.md").read_text(), PRINT


@pytest.mark.parametrize(
    "part", ["checkpoint", "tables", "timer", "journal", "raft", "users", "version", "kv"]
)
def test_a_start_that_cannot_read_a_file_fails(part: str) -> None:
    """It does not begin as if there were none; the error names the file."""
    disk = MemoryDisk()
    names = {
        "checkpoint": "store/checkpoint", "tables": "store/config/topics.json",
        "timer": "store/config/timercheck", "journal": "store/config/publishing.json",
        "raft": "store/raft/state.json", "users": "store/config/access.json",
        "version": "store/store.json", "kv": "namesrv/kvConfig.json",
    }  # fmt: skip
    path = names[part]
    disk.make_dirs(path.rpartition("/")[0])
    disk.open(path, create=True).pwrite(bytes(4096), 0)
    disk.fault = lambda name, where: (
        OSError(errno.EIO, "broken", where) if name == "pread" else None
    )
    read = {
        "checkpoint": lambda: checkpoint.load(disk, path),
        "tables": lambda: load_table(disk, path, TopicTable),
        "timer": lambda: load_check(disk, path),
        "journal": lambda: load_writers(disk, path),
        "raft": lambda: MemberFiles(disk, "store").load_state(),
        "users": lambda: UserTable(disk, InlineOffload(), path, UserRules("DefaultCluster")),
        "version": lambda: check_version(disk, "store"),
        "kv": lambda: KvConfig(disk, InlineOffload(), path),
    }[part]

    with pytest.raises(OSError, match="broken") as failed:
        read()
    assert path == failed.value.filename
