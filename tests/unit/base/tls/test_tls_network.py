"""Connections with TLS and without on one port, over sockets and in memory."""

import asyncio
import os
import ssl
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
from tlskit import Authority, Certificate

from gantrymq.base.network import ConnectFailed, Network, TcpNetwork
from gantrymq.base.tls import files as tls_files
from gantrymq.base.tls import layer, network
from gantrymq.base.tls.files import TlsFiles
from gantrymq.base.tls.network import TlsMode, TlsNetwork
from gantrymq.base.tls.settings import TlsParty, TlsSettings
from gantrymq.testing.network import MemoryNetwork

LOCAL = "127.0.0.1"
MEGABYTES = 8 * 1024 * 1024


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Caller(asyncio.Protocol):
    """Sends, and waits for as many bytes to come back."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.got = bytearray()
        self.came, self.lost = asyncio.Event(), asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()

    async def echo(self, data: bytes) -> bytes:
        self.got.clear()
        self.transport.write(data)
        while len(self.got) < len(data):
            self.came.clear()
            await self.came.wait()
        return bytes(self.got)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def party(
    certificate: Certificate | None = None, trust: Path | None = None, password: str = ""
) -> TlsParty:
    return TlsParty(
        cert_path=str(certificate.cert) if certificate else "",
        key_path=str(certificate.key) if certificate else "",
        key_password=password,
        trust_path=str(trust) if trust else "",
        checks_peer=trust is not None,
    )


def settings(
    authority: Authority, mode: TlsMode = TlsMode.PERMISSIVE, client_auth: str = "none"
) -> TlsSettings:
    trusted = authority.cert if client_auth != "none" else None
    return TlsSettings(mode, client_auth, party(authority.issue("server"), trusted))


Work = Callable[[Network, TlsNetwork, int], Awaitable[None]]


def play(server: TlsSettings, client: TlsSettings | None, work: Work, below: Network) -> None:
    """A port that echoes; `work` gets a plain network, one of the client, and the port."""

    async def run() -> None:
        listening = TlsNetwork(below, server=TlsFiles(server))
        listener = await listening.listen(LOCAL, 0, Echo)
        calling = TlsNetwork(below, client=TlsFiles(client or TlsSettings()).client_context)
        async with asyncio.timeout(20):
            await work(below, calling, listener.port)
        await listener.close()

    asyncio.run(run())


@pytest.fixture(params=["tcp", "memory"])
def below(request: pytest.FixtureRequest) -> Network:
    return TcpNetwork() if request.param == "tcp" else MemoryNetwork()


class TestModes:
    def test_permissive_takes_both(self, authority: Authority, below: Network) -> None:
        """The first byte of a connection tells which it is."""

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            for way in (plain, tls):
                caller = await way.connect(LOCAL, port, Caller, 5)
                assert await caller.echo(b"\0hello") == b"\0hello"
                big = os.urandom(MEGABYTES)
                assert await caller.echo(b"\0" + big) == b"\0" + big
                caller.transport.close()
                await caller.lost.wait()

        play(settings(authority), None, work, below)

    def test_enforcing_takes_tls_only(self, authority: Authority, below: Network) -> None:
        """A plain connection ends with its first byte."""

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            caller = await plain.connect(LOCAL, port, Caller, 5)
            caller.transport.write(b"\0hello")
            await caller.lost.wait()
            assert not caller.got
            caller = await tls.connect(LOCAL, port, Caller, 5)
            assert await caller.echo(b"\0hello") == b"\0hello"

        play(settings(authority, TlsMode.ENFORCING), None, work, below)

    @pytest.mark.parametrize("why", ["disabled", "no certificate"])
    def test_without_tls_a_handshake_is_refused(
        self, authority: Authority, below: Network, why: str
    ) -> None:
        """Disabled, or permissive without a certificate: plain connections only."""

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            with pytest.raises(ConnectFailed, match="TLS to 127"):
                await tls.connect(LOCAL, port, Caller, 5)
            caller = await plain.connect(LOCAL, port, Caller, 5)
            assert await caller.echo(b"\0hello") == b"\0hello"

        chosen = settings(authority, TlsMode.DISABLED) if why == "disabled" else TlsSettings()
        play(chosen, None, work, below)


class TestCertificates:
    def test_a_client_that_checks_wants_a_trusted_server(
        self, authority: Authority, below: Network, tmp_path: Path
    ) -> None:
        """The right authority, and with the name of the host if that is asked for."""
        stranger = Authority(tmp_path, "stranger")

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            caller = await tls.connect(LOCAL, port, Caller, 5)
            assert await caller.echo(b"\0yes") == b"\0yes"
            for client in (
                TlsSettings(client=party(trust=stranger.cert)),
                TlsSettings(client=party(trust=authority.cert), checks_host_name=True),
            ):
                other = TlsNetwork(below, client=TlsFiles(client).client_context)
                with pytest.raises(ConnectFailed, match="certificate verify failed"):
                    await other.connect(LOCAL, port, Caller, 5)

        play(settings(authority), TlsSettings(client=party(trust=authority.cert)), work, below)

    def test_a_server_may_want_certificates_of_clients(
        self, authority: Authority, below: Network, tmp_path: Path
    ) -> None:
        """Mutual TLS: none, one of a stranger, and the right one, with its key encrypted."""
        stranger = Authority(tmp_path, "stranger").issue("mallory")
        known = party(authority.issue("client", password="secret"), password="secret")

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            caller = await tls.connect(LOCAL, port, Caller, 5)
            assert await caller.echo(b"\0yes") == b"\0yes"
            for client in (TlsParty(), party(stranger)):
                context = TlsFiles(TlsSettings(client=client)).client_context
                # With TLS 1.3 a client learns of the refusal from the first answer.
                try:
                    refused = await TlsNetwork(below, client=context).connect(
                        LOCAL, port, Caller, 5
                    )
                except ConnectFailed:
                    continue
                refused.transport.write(b"\0hello")
                await refused.lost.wait()
                assert not refused.got

        required = settings(authority, TlsMode.ENFORCING, "require")
        play(required, TlsSettings(client=known), work, below)

    def test_nothing_older_than_tls_1_2(self, authority: Authority) -> None:
        """A client that offers 1.1 is refused in the handshake."""
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            with pytest.raises(ConnectFailed):
                await TlsNetwork(plain, client=lambda: old).connect(LOCAL, port, Caller, 5)
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = TlsFiles(TlsSettings()).client_context()
                context.minimum_version = context.maximum_version = version
                network = TlsNetwork(plain, client=lambda context=context: context)
                caller = await network.connect(LOCAL, port, Caller, 5)
                assert await caller.echo(b"\0yes") == b"\0yes"

        play(settings(authority), None, work, TcpNetwork())

    def test_a_renewed_certificate_counts_for_new_connections(
        self, authority: Authority, below: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those that exist go on; a damaged file changes nothing."""
        monkeypatch.setattr(tls_files, "CHECK_SECONDS", 0.0)
        server = settings(authority, TlsMode.ENFORCING)

        def damage() -> None:
            Path(server.server.cert_path).write_text("damaged")

        async def serial(tls: TlsNetwork, port: int) -> tuple[Caller, bytes]:
            caller = await tls.connect(LOCAL, port, Caller, 5)
            return caller, caller.transport.get_extra_info("ssl_object").getpeercert(True)

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            first, old = await serial(tls, port)
            authority.issue("server")
            _, new = await serial(tls, port)
            assert new != old
            damage()
            _, same = await serial(tls, port)
            assert same == new
            assert await first.echo(b"\0still") == b"\0still"

        play(server, None, work, below)


class TestHostilePeers:
    def test_a_handshake_that_does_not_end_is_cut_off(
        self, authority: Authority, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So is a connection that says nothing at all."""
        monkeypatch.setattr(layer, "HANDSHAKE_SECONDS_MAX", 0.2)
        monkeypatch.setattr(network, "FIRST_BYTE_SECONDS_MAX", 0.2)

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            for said in (b"\x16\x03\x01\x02\x00\x01", b""):
                caller = await plain.connect(LOCAL, port, Caller, 5)
                caller.transport.write(said)
                await caller.lost.wait()

        play(settings(authority), None, work, TcpNetwork())

    def test_garbage_behind_the_first_byte_ends_that_connection_only(
        self, authority: Authority, below: Network
    ) -> None:
        """Before and after the handshake."""

        async def work(plain: Network, tls: TlsNetwork, port: int) -> None:
            good = await tls.connect(LOCAL, port, Caller, 5)
            caller = await plain.connect(LOCAL, port, Caller, 5)
            caller.transport.write(b"\x16" + os.urandom(400))
            await caller.lost.wait()
            broken = await tls.connect(LOCAL, port, Caller, 5)
            broken.transport._below.write(os.urandom(400))  # type: ignore[attr-defined]
            await broken.lost.wait()
            assert await good.echo(b"\0still") == b"\0still"

        play(settings(authority), None, work, below)

    def test_a_peer_that_does_not_read_holds_its_writer_back(self, authority: Authority) -> None:
        """The transport above tells its protocol to stop, as a plain one does."""

        class Flood(Echo):
            paused = False

            def data_received(self, data: bytes) -> None:
                self.transport.set_write_buffer_limits(high=64 * 1024)
                self.transport.write(bytes(MEGABYTES))

            def pause_writing(self) -> None:
                Flood.paused = True

            def resume_writing(self) -> None:
                Flood.paused = False

        async def run() -> None:
            listening = TlsNetwork(TcpNetwork(), server=TlsFiles(settings(authority)))
            listener = await listening.listen(LOCAL, 0, Flood)
            calling = TlsNetwork(TcpNetwork(), client=TlsFiles(TlsSettings()).client_context)
            caller = await calling.connect(LOCAL, listener.port, Caller, 5)
            caller.transport.pause_reading()
            caller.transport.write(b"\0go")
            while not Flood.paused:
                await asyncio.sleep(0.01)
            caller.transport.resume_reading()
            while len(caller.got) < MEGABYTES or Flood.paused:
                await asyncio.sleep(0.01)
            await listener.close()

        async def bounded() -> None:
            await asyncio.wait_for(run(), 20)

        asyncio.run(bounded())
