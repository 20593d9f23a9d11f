"""Access files on disks that fail: nobody is let in by a damaged one, and nobody shut out."""

import asyncio
import errno
from collections.abc import Callable

import pytest

from gantrymq.access.plain_acl import AccountEntry
from gantrymq.access.rule_files import NotChanged, RuleFiles
from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import ConfigError
from gantrymq.base.files import read_file, save_text
from gantrymq.base.offload import InlineOffload
from gantrymq.testing.disk import MemoryDisk

PATH = "/conf/plain_acl.yml"
TEXT = """\
accounts:
- accessKey: operator
  secretKey: operator-secret
  admin: true
- {accessKey: shop-app, secretKey: shop-secret, topicPerms: [orders=PUB]}
"""
NEW = AccountEntry(access_key="billing", secret_key="billing-secret")


def disk_with_rules() -> MemoryDisk:
    disk = MemoryDisk()
    save_text(disk, PATH, TEXT)
    return disk


def opened(disk: MemoryDisk) -> RuleFiles:
    return RuleFiles(disk, InlineOffload(), SystemClock(), PATH)


def failing(disk: MemoryDisk, operation: str, number: int = errno.EIO) -> None:
    disk.fault = lambda name, path: OSError(number, "no", path) if name == operation else None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("operation", ["pwrite", "sync", "rename"])
def test_what_cannot_be_saved_is_not_changed(operation: str, number: int) -> None:
    """
    Neither in force nor on disk; the tool is told which file it is.
    """
    disk = disk_with_rules()
    files = opened(disk)
    before = files.rules
    failing(disk, operation, number)

    with pytest.raises(NotChanged, match=f"{PATH} cannot be written"):
        asyncio.run(files.put(NEW))
    disk.fault = None
    assert before is files.rules
    assert TEXT.encode() == read_file(disk, PATH)
    asyncio.run(files.put(NEW))
    assert "billing" in opened(disk).rules.accounts


def test_a_file_that_cannot_be_read_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """
    It stops a start; a running server keeps its rules, and says so.
    """
    disk = disk_with_rules()
    files = opened(disk)
    before = files.rules
    failing(disk, "pread")

    with pytest.raises(ConfigError, match=f"cannot read {PATH}"):
        opened(disk)
    asyncio.run(files.refresh())
    assert before is files.rules
    assert "ACCESS RULES NOT CHANGED" in caplog.text
    assert PATH in caplog.text


DAMAGES: dict[str, Callable[[MemoryDisk], object]] = {
    "flipped": lambda disk: disk.flip_bit(PATH, 0, 0),
    "no text": lambda disk: disk.flip_bit(PATH, 0, 7),
    "cut": lambda disk: disk.open(PATH).truncate(len(TEXT) - 4),
    "missing": lambda disk: disk.delete(PATH),
    "longer": lambda disk: disk.open(PATH).pwrite(b"}x", len(TEXT)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_lets_nobody_in(damage: str, caplog: pytest.LogCaptureFixture) -> None:
    """
    It stops a start; a running server keeps its rules, and says so without a secret.
    """
    disk = disk_with_rules()
    files = opened(disk)
    before = files.rules
    DAMAGES[damage](disk)

    with pytest.raises(ConfigError, match=PATH) as refused:
        opened(disk)
    asyncio.run(files.refresh())
    assert before is files.rules
    assert "ACCESS RULES NOT CHANGED" in caplog.text
    assert "-secret" not in caplog.text + str(refused.value)
