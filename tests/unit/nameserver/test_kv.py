"""The key-value configuration: on disk before it is answered, and nobody waits for the disk."""

import asyncio
import threading
from pathlib import Path

import pytest

from gantrymq.base.disk import OsDisk
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import TcpNetwork
from gantrymq.base.offload import InlineOffload, ThreadOffload
from gantrymq.nameserver.app import run_nameserver
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.nameserver.kv import KvConfig
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection


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
