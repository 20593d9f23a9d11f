"""Commands about copies of brokers: slaves, and epochs of masters."""

import asyncio
from collections.abc import Awaitable, Callable

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, command
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.targets import BROKER, CLUSTER, ONE_OF, masters
from gantrymq.cli.mqadmin.values import address, shown_time, whole
from gantrymq.protocol.bodies import HaStatus

INTERVAL = AdminOption("i", "interval", "Print again every so many seconds.", read=float)
SLAVES = (
    Column("slaveAddr", "#SlaveAddr", 32),
    Column("slaveAckOffset", "#SlaveAckOffset", 16),
    Column("diff", "#Diff", 16, right=True),
    Column("speed", "#TransferSpeed(KB/s)", 16, right=True, show=lambda kib: f"{kib:.2f}"),
    Column("inSync", "#Status", 16, right=True, show=lambda ok: "OK" if ok else "Fall Behind"),
    Column("transferFromWhere", "#TransferFromWhere", 16, right=True),
)


async def repeated(call: Invocation, work: Callable[[], Awaitable[None]]) -> None:
    """Once, or with `-i` again and again."""
    await work()
    while call["interval"] is not None:
        await asyncio.sleep(call["interval"])
        await work()


@command("haStatus", "Fetch ha runtime status data.", BROKER, CLUSTER, INTERVAL, one_of=ONE_OF)
async def ha_status(call: Invocation) -> None:
    async def show() -> None:
        for place in await masters(call):
            status = await call.admin.ha_status(place)
            (_master if status.master else _slave)(call, place, status)

    await repeated(call, show)


def _master(call: Invocation, place: str, status: HaStatus) -> None:
    end, slaves = status.master_commit_log_max_offset, status.ha_connection_info
    call.out.field("masterAddr", place, f"\n#MasterAddr\t{place}")
    call.out.field("masterCommitLogMaxOffset", end, f"#MasterCommitLogMaxOffset\t{end}")
    call.out.field("slaveNum", len(slaves), f"#SlaveNum\t{len(slaves)}")
    synced = status.in_sync_slave_nums
    call.out.field("inSyncSlaveNum", synced, f"#InSyncSlaveNum\t{synced}")
    row = call.out.table(SLAVES)
    for each in slaves:
        row(each.addr, each.slave_ack_offset, each.diff, each.transferred_byte_in_second / 1024,
            each.in_sync, each.transfer_from_where)  # fmt: skip


def _slave(call: Invocation, place: str, status: HaStatus) -> None:
    link = status.ha_client_runtime_info
    rows = (
        ("masterAddr", "#MasterAddr", link.master_addr or ""),
        ("commitLogMaxOffset", "#CommitLogMaxOffset", link.max_offset),
        ("speed", "#TransferSpeed(KB/s)", round(link.transferred_byte_in_second / 1024, 2)),
        ("lastReadTime", "#LastReadTime", shown_time(link.last_read_timestamp)),
        ("lastWriteTime", "#LastWriteTime", shown_time(link.last_write_timestamp)),
        ("masterFlushOffset", "#MasterFlushOffset", link.master_flush_offset),
    )
    call.out.text()
    for key, title, value in rows:
        call.out.field(key, value, f"{title}\t{value}")


EPOCHS = (
    Column("epoch", "", show=lambda epoch: f"#Epoch: EpochEntry{{epoch={epoch},"),
    Column("startOffset", "", show=lambda offset: f"startOffset={offset},"),
    Column("endOffset", "", show=lambda offset: f"endOffset={offset}}}"),
    Column("brokerAddr", "", show=lambda place: ""),
)


@command(
    "getBrokerEpoch",
    "Fetch broker epoch entries.",
    AdminOption("b", "brokerName", "Name of the broker."),
    CLUSTER,
    INTERVAL,
    one_of=("brokerName", "clusterName"),
)
async def get_broker_epoch(call: Invocation) -> None:
    async def show() -> None:
        found = await call.admin.members(cluster=call["clusterName"], broker=call["brokerName"])
        for name, by_id in found.items():
            for number, place in sorted(by_id.items()):
                epochs = await call.admin.broker_epochs(place)
                call.out.text(
                    f"\n#clusterName\t{epochs.cluster_name}\n#brokerName\t{name}\n"
                    f"#brokerAddr\t{place}\n#brokerId\t{number}"
                )
                row = call.out.table(EPOCHS)
                for at, entry in enumerate(epochs.epoch_list):
                    last = at == len(epochs.epoch_list) - 1
                    end = epochs.max_offset if last else entry.end_offset
                    row(entry.epoch, entry.start_offset, end, place)

    await repeated(call, show)


@command(
    "resetMasterFlushOffset",
    "Reset master flush offset in slave.",
    AdminOption("b", "brokerAddr", "Address of the slave, ip:port.", required=True, read=address),
    AdminOption("o", "offset", "The offset.", required=True, read=whole),
)
async def reset_master_flush_offset(call: Invocation) -> None:
    await call.admin.reset_master_flush_offset(call["brokerAddr"], call["offset"])
    call.out.done(f"reset master flush offset to {call['offset']} success")


COMMANDS = (ha_status, get_broker_epoch, reset_master_flush_offset)
