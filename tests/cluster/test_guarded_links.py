"""Who gets nothing from the ports between brokers: HA and raft links ask for a key, too."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from groups import in_group, network_of, node_of, send

from gantrymq.base.errors import ConfigError
from gantrymq.replication.group.group_key import CONNECTS, GroupKey
from gantrymq.replication.group.wire import (
    FrameReader,
    Greeting,
    GreetingRefused,
    Proof,
    encode_frame,
)
from gantrymq.replication.ha.wire import REPORT
from gantrymq.replication.raft.messages import HeartbeatAnswer
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

OWN = '{"accessKey":"operator","secretKey":"operator-secret"}'
OTHER = '{"accessKey":"operator","secretKey":"another-secret"}'
RULES = "globalWhiteRemoteAddresses: [%s]\naccounts:\n" + (
    "  - {accessKey: operator, secretKey: operator-secret, admin: true}\n"
)


class Stranger(asyncio.Protocol):
    """Somebody who connects to a port, sends bytes and keeps what comes."""

    def __init__(self, said: bytes) -> None:
        self._said = said
        self.got = bytearray()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.transport.write(self._said)

    def data_received(self, data: bytes) -> None:
        self.got += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set_result(None)


# the HA port


@pytest.mark.parametrize("trusted, gets_log", [("10.9.9.9", False), ("127.0.0.1", True)])
def test_the_ha_port_gives_the_log_to_no_stranger(
    tmp_path: Path, trusted: str, gets_log: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Without a signed introduction only an address of the white list gets it, as a Java slave may be.
    """
    file = tmp_path / "plain_acl.yml"
    file.write_text(RULES % trusted)

    async def main() -> None:
        options = {"acl_enable": True, "acl_file": str(file)}
        async with (
            asyncio.timeout(20),
            Cluster(**options, inner_client_authentication_credentials=OWN) as cluster,
        ):
            port = cluster.broker().config.ha_listen_port
            stranger = await cluster.network.connect(
                "127.0.0.1", port, lambda: Stranger(REPORT.pack(0)), 5.0
            )
            if gets_log:
                while not stranger.got:
                    await asyncio.sleep(0.02)
                stranger.transport.close()
            await stranger.closed
            assert gets_log == bool(stranger.got)

    asyncio.run(main())
    assert gets_log != ("did not introduce itself with an admin's key" in caplog.text)


# the raft port


def with_keys(work: Any, **options: Any) -> None:
    in_group(work, inner_client_authentication_credentials=OWN, **options)


def test_members_with_the_same_key_are_a_group() -> None:
    """
    They elect, copy and answer; after a kill the others go on.
    """

    async def work(cluster: Cluster) -> None:
        assert ["SEND_OK"] * 2 == await send(cluster, "a", "b")
        leader = cluster.leader
        assert leader is not None
        await cluster.kill_broker(leader)
        await cluster.wait_for_leader()
        assert ["SEND_OK"] == await send(cluster, "c")

    with_keys(work)


@pytest.mark.parametrize("own, said", [(OTHER, "has another key"), ("", "has no key")])
def test_a_member_with_another_key_is_left_out(
    own: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Both sides say why; the others are a majority and serve.
    """

    async def work(cluster: Cluster) -> None:
        name = next(name for name in cluster.running if name != cluster.leader)
        await cluster.stop_broker(name)
        cluster.reconfigure(name, inner_client_authentication_credentials=own)
        await cluster.start_broker(name)
        await asyncio.sleep(5)
        assert [] == node_of(cluster, name).connected
        assert ["SEND_OK"] == await send(cluster, "a")

    with_keys(work)
    assert said in caplog.text
    assert "give all members the same innerClientAuthenticationCredentials" in caplog.text


def frames(stranger: Stranger) -> Iterator[object]:
    return FrameReader().feed(bytes(stranger.got))


@pytest.mark.parametrize("proof", ["none", "guessed", "echoed"])
def test_a_stranger_deposes_nobody(proof: str) -> None:
    """
    Who knows group, ids and addresses but not the key is heard by nobody, and takes no place.
    """

    async def work(cluster: Cluster) -> None:
        leader = await cluster.wait_for_leader()
        node = node_of(cluster, leader)
        friend = next(name for name in cluster.running if name != leader)
        host, port = cluster.broker(leader).config.group_identity.addresses[leader]
        greeting = Greeting(
            group=node.identity.group,
            sender=friend,
            receiver=leader,
            members=node.identity.members,
            file_bytes=cluster.broker(leader).store.config.segment_bytes,
            address="10.9.9.9:10911",
            is_empty=True,
            challenge=b"x" * 32,
        )
        stranger = await network_of(cluster).connect(
            host, port, lambda: Stranger(encode_frame(greeting)), 1.0
        )
        await asyncio.sleep(0.1)
        answer = next(frames(stranger))
        assert isinstance(answer, Greeting)
        for frame in wrong_frames(greeting, answer, proof, term=node.core.term + 100):
            stranger.transport.write(frame)
        await asyncio.wait_for(stranger.closed, 10)

        refusals = [each for each in frames(stranger) if isinstance(each, GreetingRefused)]
        assert (proof != "none") == any("another key" in each.reason for each in refusals)
        assert leader == cluster.leader
        assert node.core.term < 100
        assert friend in node.connected
        assert ["SEND_OK"] == await send(cluster, "a")

    with_keys(work)


def wrong_frames(mine: Greeting, theirs: Greeting, proof: str, term: int) -> list[bytes]:
    """What a stranger sends behind the greeting."""
    way = {"group": mine.group, "term": term, "sender": mine.sender, "receiver": mine.receiver}
    later = msgspec.convert(way, HeartbeatAnswer)  # a larger term makes anybody a follower
    said = {
        "guessed": GroupKey(b"operator:guess").proof(CONNECTS, mine, theirs),
        "echoed": theirs.proof,
    }
    first = [Proof(proof=said[proof])] if proof in said else []
    return [encode_frame(frame) for frame in (*first, later)]


def test_a_group_with_access_control_needs_a_key_for_its_links(tmp_path: Path) -> None:
    """
    It does not start with an open raft port.
    """
    file = tmp_path / "plain_acl.yml"
    file.write_text(RULES % "")

    async def main() -> None:
        async with Cluster(members=3, acl_enable=True, acl_file=str(file)):
            raise AssertionError("it started")

    with pytest.raises(ConfigError, match="give all of them the same innerClientAuth"):
        asyncio.run(main())


def test_a_group_key_is_in_no_text() -> None:
    """
    Nor in the settings that hold it.
    """
    assert "GroupKey(<hidden>)" == repr(GroupKey(b"secret"))


def test_a_slave_with_a_key_follows_a_master_in_memory() -> None:
    """
    The introduction is signed, so that the port opens for it.
    """

    async def main() -> None:
        async with Cluster(
            memory=True, slaves=1, inner_client_authentication_credentials=OWN
        ) as cluster:
            assert ["SEND_OK"] == await send(cluster, "a")
            slave = cluster.broker("broker-a-s1")
            while slave.store.log_max < cluster.broker().store.log_max:
                await asyncio.sleep(0.05)

    simulate(main)
