"""`gantry up --secure`: one file opens everything, and nothing opens without it."""

import asyncio
import ssl
import stat
import subprocess
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_cli import Up, gantry
from test_up_console import children, up
from tlskit import Authority

from gantrymq import Admin, ClientError, ClientOptions, Consumer, Credentials, Message, Producer
from gantrymq.access.key_sources import credentials_of_file
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import PREFIX, Command, decode_header, encode
from gantrymq.replication.ha.wire import REPORT

pytestmark = pytest.mark.timeout(120)

SECONDS_MAX = 60
SILENT_SECONDS = 12
"""Longer than a server with access control waits for a key."""


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS_MAX))


def client(namesrv: str, **changes: Any) -> ClientOptions:
    return ClientOptions(namesrv=namesrv, **changes)


async def send_and_read(options: ClientOptions, topic: str = "orders") -> list[str]:
    async with Producer(group="shop", client=options) as producer:
        for number in range(3):
            await producer.send(Message(topic, f"order {number}"))
    async with Consumer(group="billing", client=options, start="first") as consumer:
        consumer.subscribe(topic)
        found = []
        async for message in consumer:
            found.append(message.body.decode())
            await message.ack()
            if len(found) == 3:
                return sorted(found)
    return []


def test_one_file_opens_everything(tmp_path: Path) -> None:
    """
    A Python program, commands and mqadmin need client.yml; a restart keeps the keys.
    """
    key_file = tmp_path / "secure" / "client.yml"
    with Up(tmp_path, "--secure") as up:
        options = client(up.namesrv, key_file=str(key_file))

        async def program() -> None:
            async with Admin(client=options) as admin:
                await admin.create_topic("orders", queues=1)
            assert ["order 0", "order 1", "order 2"] == await send_and_read(options)

        run(program())
        keys = {"GANTRY_CREDENTIALS": str(key_file)}
        listed = gantry("topic", "list", "-n", up.namesrv, **keys)
        assert 0 == listed.returncode, listed.stderr
        assert b"orders" in listed.stdout
        admin = gantry("admin", "topicRoute", "-t", "orders", "-n", up.namesrv, **keys)
        assert b"brokerDatas" in admin.stdout
        by_option = gantry("--key-file", str(key_file), "topic", "list", "-n", up.namesrv)
        assert by_option.stdout == listed.stdout
        mine = {"GANTRY_CONFIG": str(tmp_path / "profiles.toml")}
        kept = ("profile", "add", "mine", "-n", up.namesrv, "--key-file", str(key_file))
        assert 0 == gantry(*kept, **mine).returncode
        assert listed.stdout == gantry("topic", "list", **mine).stdout
        home = tmp_path / "home"
        (home / "conf").mkdir(parents=True)
        (home / "conf" / "tools.yml").write_bytes(key_file.read_bytes())
        tools = gantry("admin", "topicList", "-n", up.namesrv, ROCKETMQ_HOME=str(home))
        assert b"orders" in tools.stdout

        secret = credentials_of_file(key_file).secret_key
        shown = subprocess.check_output(["ps", "-eww", "-o", "args"], text=True)
        assert "mqbroker" in shown
        assert secret not in shown
        logs = [path.read_text() for path in (tmp_path / "logs").rglob("*.log")]
        assert logs
        assert not any(secret in text for text in logs)
    before = key_file.read_bytes()
    with Up(tmp_path, "--secure") as up:
        assert before == key_file.read_bytes()
        assert 0 == gantry("topic", "list", "-n", up.namesrv, **keys).returncode


def test_nothing_opens_without_it(tmp_path: Path) -> None:
    """
    No TLS, TLS without a key, a wrong key, another authority: at name server and broker.
    """
    key_file = tmp_path / "secure" / "client.yml"
    with Up(tmp_path, "--secure") as up:
        trusting = tmp_path / "trusting.properties"
        trusting.write_text("tls.client.authServer=false\n")
        other = tmp_path / "other.properties"
        other.write_text(
            "tls.client.authServer=true\n"
            f"tls.client.trustCertPath={Authority(tmp_path, 'another').cert}\n"
        )
        wrong = Credentials("gantry-admin", "not-the-secret-key")

        async def strangers() -> None:
            plain = client(up.namesrv)
            for options in (
                plain,
                client(up.namesrv, use_tls=True, tls_config=str(trusting)),
                client(up.namesrv, use_tls=True, tls_config=str(trusting), credentials=wrong),
                client(up.namesrv, key_file=str(key_file), tls_config=str(other)),
            ):
                with pytest.raises(ClientError):
                    async with Admin(client=options) as admin:
                        await admin.topics()

        run(strangers())


TLS_ALERT = b"\x15\x03"
"""What a handshake that fails may still say."""
SAID = {
    "a request": encode(Command(code=RequestCode.GET_BROKER_RUNTIME_INFO, ext={})),
    "a look-up": encode(Command(code=RequestCode.GET_BROKER_CLUSTER_INFO, ext={})),
    "a slave": REPORT.pack(0),
    "a page": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    "metrics": b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
}
"""What somebody says who knows which port it is."""


@pytest.mark.parametrize("more, ports", [((), 6), (("--mode", "dledger"), 14)])
def test_no_port_of_any_process_opens(more: tuple[str, ...], ports: int, tmp_path: Path) -> None:
    """
    For clients, copies, raft links, metrics or the console: neither plainly nor without a key.
    """
    metrics = tmp_path / "metrics.properties"
    metrics.write_text("metricsExporterType=PROM\nmetricsPromExporterPort=0\n")
    with up(tmp_path, "--secure", "--config", str(metrics), *more) as (_, _, process):
        found = sorted(set().union(*map(listening_ports, children(process.pid))))
        assert ports == len(found), found
        anybody = ssl.create_default_context()
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE

        async def ask(port: int, what: str) -> list[tuple[int, str, bytes]]:
            """What the port says to this that it should not say, plainly and over TLS."""
            plain, sealed = await asyncio.gather(
                answer(port, SAID[what], None), answer(port, SAID[what], anybody)
            )
            told = plain if plain and not plain.startswith(TLS_ALERT) else b""
            return [(port, what, got) for got in (told, sealed if serves(sealed) else b"") if got]

        async def strangers() -> None:
            each = await asyncio.gather(*(ask(port, what) for port in found for what in SAID))
            assert [] == [opened for some in each for opened in some]

        run(strangers())


def listening_ports(pid: int) -> set[int]:
    """The TCP ports on which a process listens."""
    mine = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed in the meantime
            mine.add(str(file.readlink()))
    tables = [path for path in map(Path, ("/proc/net/tcp", "/proc/net/tcp6")) if path.exists()]
    rows = [line.split() for path in tables for line in path.read_text().splitlines()]
    return {
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if row[3] == "0A" and f"socket:[{row[9]}]" in mine
    }


async def answer(port: int, said: bytes, context: ssl.SSLContext | None) -> bytes:
    """What comes back until the port closes, or for some seconds."""
    got = b""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(SILENT_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(said)
            while chunk := await reader.read(65_536):
                got += chunk
    return got


def serves(got: bytes) -> bool:
    """Whether an answer is more than a refusal or the way to the login."""
    if got.startswith(b"HTTP/"):
        status = int(got.split()[1])
        return status < 300 or (status < 400 and b"location: /login" not in got)
    if not got:
        return False
    size, mark = PREFIX.unpack_from(got)
    assert len(got) == 4 + size, got
    head = decode_header(mark >> 24, got[8 : 8 + (mark & 0xFFFFFF)])
    return "No accessKey is configured" not in (head.remark or "")


def test_a_raft_group_is_secure_too(tmp_path: Path) -> None:
    """
    Its members prove the key to each other, over TLS; it elects and serves.
    """
    with Up(tmp_path, "--secure", "--mode", "dledger") as up:
        options = client(up.namesrv, key_file=str(tmp_path / "secure" / "client.yml"))

        async def program() -> None:
            async with Admin(client=options) as admin:
                await admin.create_topic("orders", queues=1)
            assert ["order 0", "order 1", "order 2"] == await send_and_read(options)

        run(program())


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    """
    Keys, accounts and settings; the folder, too.
    """
    with Up(tmp_path, "--secure"):
        folder = tmp_path / "secure"
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}

    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {0o600} == set(modes.values()), modes
