"""Limits where no running broker is asked to change them: name servers, and ports with TLS."""

import asyncio

from gantrymq.base.tls.network import TlsMode, TlsNetwork
from gantrymq.nameserver.app import run_nameserver
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.protocol.command import Command
from gantrymq.remoting.admission import ServerAdmission
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import ConnectionLimits
from gantrymq.remoting.server import HandlerTable, Server
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

HOST = "127.0.0.1"
NO_PERMISSION = 16


class NoCertificate:
    """A port that knows of TLS and has no certificate yet."""

    mode, context = TlsMode.PERMISSIVE, None


def test_a_name_server_keeps_so_many_brokers_and_values() -> None:
    """
    One more of each is refused with the name of the limit; those it knows may come again.
    """

    async def story() -> list[tuple[int, str | None]]:
        config = NameServerConfig(
            listen_port=0, bind_address=HOST, max_brokers=1, max_kv_bytes=20,
            kv_config_path="/kv.json", config_store_path="/namesrv.properties",
        )  # fmt: skip
        network = MemoryNetwork()
        async with run_nameserver(config, network=network, disk=MemoryDisk()) as server:
            connection = await network.connect(HOST, server.port, Connection, 3)

            async def ask(code: int, **ext: str) -> tuple[int, str | None]:
                answer = await connection.call(Command(code=code, ext=ext), 3)
                return answer.code, answer.remark

            def register(name: str) -> dict[str, str]:
                return {
                    "brokerName": name, "brokerAddr": f"{name}:10911", "clusterName": "c",
                    "haServerAddr": "", "brokerId": "0",
                }  # fmt: skip

            return [
                await ask(103, **register("a")),
                await ask(103, **register("a")),
                await ask(103, **register("b")),
                await ask(100, namespace="ns", key="k", value="v"),
                await ask(100, namespace="ns", key="long", value="v" * 20),
            ]

    assert [
        (0, None),
        (0, None),
        (NO_PERMISSION, "no more brokers: raise maxBrokers (now 1)"),
        (0, None),
        (NO_PERMISSION, "no more KV config: raise maxKvBytes (now 20)"),
    ] == simulate(story)


def test_connections_count_before_they_say_a_word() -> None:
    """
    On a port that waits for the first byte, plain or TLS, silent connections are counted, each once
    before and after its first request, and no more when it is gone.
    """

    async def story() -> tuple[list[bool], int, int]:
        memory = MemoryNetwork()
        admission = ServerAdmission(ConnectionLimits(max_connections_per_address=2))

        def echo(connection: Connection, command: Command) -> None:
            connection.reply(command)

        network = TlsNetwork(memory, server=NoCertificate())
        server = Server(HandlerTable({1: echo}), network, admission=admission)
        port = await server.start(HOST, 0)
        first, *others = [await memory.connect(HOST, port, Connection, 3) for _ in range(3)]
        await asyncio.sleep(1)
        opened = [each.open for each in (first, *others)]
        code = (await first.call(Command(code=1), 3)).code
        for each in (first, *others):
            each.close()
        await asyncio.sleep(1)
        again = [await memory.connect(HOST, port, Connection, 3) for _ in range(2)]
        codes = [(await each.call(Command(code=1), 3)).code for each in again]
        await server.stop()
        return opened, code + sum(codes), admission.refusals.counts["maxConnectionsPerAddress"]

    assert ([True, True, False], 0, 1) == simulate(story)
