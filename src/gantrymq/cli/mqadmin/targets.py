"""The addresses that a command is for: `-b ADDRESS` or `-c CLUSTER`, where `-b` beats `-c`."""

from gantrymq.cli.mqadmin.command import AdminOption, Invocation
from gantrymq.cli.mqadmin.values import address

BROKER = AdminOption("b", "brokerAddr", "Address of the broker, ip:port.", read=address)
CLUSTER = AdminOption("c", "clusterName", "Name of the cluster.")
ONE_OF = ("brokerAddr", "clusterName")


async def masters(call: Invocation, cluster: str = "clusterName") -> list[str]:
    """The broker of `-b`, or every master of the cluster of `-c`."""
    if call["brokerAddr"] is not None:
        return [call["brokerAddr"]]
    return list((await call.admin.masters(cluster=call[cluster])).values())


async def members(call: Invocation, cluster: str = "clusterName") -> list[str]:
    """The broker of `-b`, or every broker of the cluster of `-c`, slaves too."""
    if call["brokerAddr"] is not None:
        return [call["brokerAddr"]]
    found = await call.admin.members(cluster=call[cluster])
    return [place for by_id in found.values() for _, place in sorted(by_id.items())]
