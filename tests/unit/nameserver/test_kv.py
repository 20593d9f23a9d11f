"""The key-value configuration: on disk before it is answered, and nobody waits for the disk."""

import asyncio
import errno
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq.base.disk import OsDisk
from gantrymq.base.errors import ConfigError
from gantrymq.base.files import read_file
from gantrymq.base.network import TcpNetwork
from gantrymq.base.offload import InlineOffload, ThreadOffload
from gantrymq.nameserver.app import run_nameserver
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.nameserver.kv import KvConfig
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.testing.disk import MemoryDisk

PATH = "/namesrv/kvConfig.json"


class SlowDisk(OsDisk):
    """A disk whose renames take as long as somebody wants."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go = threading.Event()

    def rename(self, old: str, new: str) -> None:
        self.may_go.wait(30)
        super().rename(old, new)


def test_routes_are_answered_while_a_change_waits_for_the_disk(tmp_path: Path) -> None:
    """
    A disk that takes seconds holds the change that needs it, and nothing else.
    """
    disk = SlowDisk()
    config = NameServerConfig(
        listen_port=0,
        bind_address="127.0.0.1",
        kv_config_path=str(tmp_path / "kv.json"),
        config_store_path=str(tmp_path / "namesrv.properties"),
    )

    async def main() -> None:
        async with run_nameserver(config, disk=disk) as server:
            connect = TcpNetwork().connect
            changer = await connect("127.0.0.1", server.port, Connection, 3)
            reader = await connect("127.0.0.1", server.port, Connection, 3)
            fields = {"namespace": "n", "key": "k", "value": "v"}
            changing = asyncio.ensure_future(changer.call(Command(code=100, ext=fields), 20))
            settings = b"orderMessageEnable=true"
            other = asyncio.ensure_future(changer.call(Command(code=318, body=settings), 20))
            for _ in range(20):
                answer = await reader.call(Command(code=105, ext={"topic": "none"}), 5)
                assert 17 == answer.code
            assert not changing.done()
            assert not other.done()
            disk.may_go.set()
            assert [0, 0] == [(await changing).code, (await other).code]
            found = await reader.call(Command(code=101, ext=fields), 5)
            assert "v" == found.ext["value"]

    asyncio.run(main())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("operation", ["pwrite", "sync", "rename"])
def test_what_cannot_be_saved_is_not_changed(operation: str, number: int) -> None:
    """
    The old value stays, in memory and on disk, until a disk that obeys has the new one.
    """
    disk = MemoryDisk()
    kv = KvConfig(disk, InlineOffload(), PATH)
    asyncio.run(kv.put("n", "k", "first"))
    disk.fault = lambda name, path: OSError(number, "no", path) if name == operation else None

    with pytest.raises(ConfigError, match=f"cannot write {PATH}"):
        asyncio.run(kv.put("n", "k", "second"))
    disk.fault = None
    assert ["first", "first"] == [
        each.get("n", "k") for each in (kv, KvConfig(disk, InlineOffload(), PATH))
    ]
    asyncio.run(kv.put("n", "k", "second"))
    assert "second" == KvConfig(disk, InlineOffload(), PATH).get("n", "k")


def flip(disk: MemoryDisk, path: str) -> None:
    disk.flip_bit(path, 1, 7)  # no text in UTF-8 any more


DAMAGES: dict[str, Callable[[MemoryDisk, str], object]] = {
    "flipped": flip,
    "cut": lambda disk, path: disk.open(path).truncate(20),
    "emptied": lambda disk, path: disk.open(path).truncate(0),
    "longer": lambda disk, path: disk.open(path).pwrite(b"}x", len(read_file(disk, path))),
    "missing": lambda disk, path: disk.delete(path),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_gives_way_to_its_backup(
    damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """
    With a word in the log; without one the start is refused, or the next change would drop all.
    """
    disk = MemoryDisk()
    kv = KvConfig(disk, InlineOffload(), PATH)
    for value in ("first", "second"):
        asyncio.run(kv.put("n", "k", value))
    DAMAGES[damage](disk, PATH)

    assert "first" == KvConfig(disk, InlineOffload(), PATH).get("n", "k")
    assert (damage != "missing") == ("its backup is used" in caplog.text)
    flip(disk, f"{PATH}.bak")
    with pytest.raises(ConfigError, match="and its backup cannot be read"):
        KvConfig(disk, InlineOffload(), PATH)


def test_what_cannot_be_written_is_not_changed(tmp_path: Path) -> None:
    """
    A value that would be gone after a restart is not shown before it.
    """
    path = tmp_path / "kv.json"

    async def main() -> None:
        kv = KvConfig(OsDisk(), InlineOffload(), str(path))
        await kv.put("n", "k", "first")
        again = KvConfig(OsDisk(), ThreadOffload(1), str(path))
        blocked = KvConfig(OsDisk(), InlineOffload(), str(path / "below" / "kv.json"))
        with pytest.raises(ConfigError, match="cannot write"):
            await blocked.put("n", "k", "second")

        assert "first" == again.get("n", "k")
        assert blocked.get("n", "k") is None
        await again.delete("n", "k")
        assert KvConfig(OsDisk(), InlineOffload(), str(path)).get("n", "k") is None

    asyncio.run(main())
