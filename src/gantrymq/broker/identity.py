"""Refuses to start a broker whose name and id another one has.

A name server keeps one address for a name and an id, so two brokers with the same ones would take
clients from each other, and each would have half of the messages. Before it opens its ports a
broker asks the name servers who has its name and id, and asks that address whether it still is.
Name servers that do not answer in time are left out: a broker starts without them.
"""

import asyncio
from typing import Final

from gantrymq.base.config import parse_properties
from gantrymq.base.disk import Disk
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.network import Network, split_address
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.settings.own_key import own_signer
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import ClusterInfo
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.replication.group.files import MemberFiles

ASK_SECONDS_MAX: Final = 1.0
DLEDGER_FOLDER: Final = "dledger-"
"""RocketMQ's raft groups keep their log in a folder of that name, in a format of its own."""


class IdentityTaken(GantryError):
    """Another broker runs under this name and id."""


def check_kind_of_store(config: BrokerConfig, disk: Disk) -> None:
    """Raise ConfigError if the store is a raft group's and the settings are not, or the reverse.

    A single broker that wrote to a member's log would make it another one than the group's.
    """
    root = config.store_path_root_dir
    state = MemberFiles(disk, root).load_state()
    if state is not None and not config.enable_d_leger_commit_log:
        raise ConfigError(
            f"the store in {root} is that of {state.me} of raft group {state.group}: start it with "
            f"enableDLegerCommitLog=true, dLegerGroup={state.group}, dLegerSelfId={state.me} and "
            "dLegerPeers. To take it out of the group for good, delete the folder raft below it"
        )
    if any(name.startswith(DLEDGER_FOLDER) for name in disk.list(root)):
        raise ConfigError(
            f"the store in {root} is one of RocketMQ's DLedger, whose log has another format: "
            "make an ordinary one of it with `gantry store migrate`, or begin with an empty store"
        )


async def check_identity(config: BrokerConfig, address: str, network: Network) -> None:
    """Raise IdentityTaken if a running broker at another address has this name and id."""
    found = await asyncio.gather(
        *(_registered(config, server, network) for server in config.name_servers)
    )
    for other in sorted({each for each in found if each not in (None, address)}, key=str):
        assert other is not None
        if await _is_running(config, other, network):
            raise IdentityTaken(
                f"{config.broker_name} with brokerId={config.broker_id} runs at {other} already: "
                "stop that one first, or give this broker another name or id"
            )


async def _ask(config: BrokerConfig, address: str, code: int, network: Network) -> bytes:
    """The body of an answer; empty if there is none in time."""
    host, port = split_address(address, 9876)
    try:
        connection = await network.connect(
            host, port, lambda: Connection(sign=own_signer(config)), ASK_SECONDS_MAX
        )
    except GantryError:
        return b""
    try:
        return (await connection.call(Command(code=code), ASK_SECONDS_MAX)).body
    except GantryError:
        return b""
    finally:
        connection.close()


async def _registered(config: BrokerConfig, server: str, network: Network) -> str | None:
    """The address that a name server has for this name and id."""
    body = await _ask(config, server, c.GET_BROKER_CLUSTER_INFO.code, network)
    if not body:
        return None
    data = fastjson.load_as(body, ClusterInfo).broker_addr_table.get(config.broker_name)
    if data is None or data.cluster not in ("", config.broker_cluster_name):
        return None
    return data.broker_addrs.get(str(config.broker_id))


async def _is_running(config: BrokerConfig, address: str, network: Network) -> bool:
    """Whether the broker at an address says that it has this name and id."""
    body = await _ask(config, address, c.GET_BROKER_CONFIG.code, network)
    said = parse_properties(body.decode("utf-8", "replace"))
    mine = config.broker_name, str(config.broker_id)
    return (said.get("brokerName"), said.get("brokerId")) == mine
