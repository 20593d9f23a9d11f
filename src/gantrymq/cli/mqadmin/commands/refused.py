"""Commands of RocketMQ about parts that these brokers do not have: each says why."""

from collections.abc import Awaitable, Callable

from gantrymq.cli.mqadmin.command import AdminCommand, Invocation
from gantrymq.client.core.errors import ClientError
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.refusals import REFUSED

ROCKSDB = REFUSED[Code.EXPORT_ROCKSDB_CONFIG]
LITE = "lite topics of RocketMQ 5.5 are not built"

SUMMARIES = {
    "getColdDataFlowCtrInfo": ("Get cold data flow ctr info.", Code.GET_COLD_DATA_FLOW_CTR_INFO),
    "updateColdDataFlowCtrGroupConfig": (
        "Add or update cold data flow ctr group config.",
        Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
    ),
    "removeColdDataFlowCtrGroupConfig": (
        "Remove consumer from cold ctr config.",
        Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
    ),
    "setCommitLogReadAheadMode": (
        "Set read ahead mode for all commitlog files.",
        Code.SET_COMMITLOG_READ_MODE,
    ),
    "checkRocksdbCqWriteProgress": (
        "Check if rocksdb cq is same as file cq.",
        Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
    ),
    "rocksDBConfigToJson": ("Convert RocksDB kv config to json.", Code.EXPORT_ROCKSDB_CONFIG),
    "getSyncStateSet": (
        "Fetch syncStateSet for target brokers.",
        Code.CONTROLLER_GET_SYNC_STATE_DATA,
    ),
    "getControllerMetaData": (
        "Get controller cluster's metadata.",
        Code.CONTROLLER_GET_METADATA_INFO,
    ),
    "getControllerConfig": ("Get controller config.", Code.GET_CONTROLLER_CONFIG),
    "updateControllerConfig": ("Update controller config.", Code.UPDATE_CONTROLLER_CONFIG),
    "electMaster": ("Re-elect the specified broker as master.", Code.CONTROLLER_ELECT_MASTER),
    "cleanBrokerMetadata": ("Clean metadata of broker on controller.", Code.CLEAN_BROKER_DATA),
    "addBroker": ("Add a broker to specified container.", Code.ADD_BROKER),
    "removeBroker": ("Remove a broker from specified container.", Code.REMOVE_BROKER),
    "updateStaticTopic": ("Update or create static topic.", Code.UPDATE_AND_CREATE_STATIC_TOPIC),
    "remappingStaticTopic": ("Remapping static topic.", Code.UPDATE_AND_CREATE_STATIC_TOPIC),
}
"""Commands whose request our brokers refuse, with the same reason."""

REASONS = {name: (text, REFUSED[code]) for name, (text, code) in SUMMARIES.items()} | {
    "exportMetadataInRocksDB": ("Export RocksDB kv config (topics/subscriptionGroups).", ROCKSDB),
    "exportPopRecord": ("Export pop consumer record.", ROCKSDB),
    "dumpCompactionLog": ("Parse compaction log to message.", "compaction topics are not built"),
    "getBrokerLiteInfo": ("Get broker lite info.", LITE),
    "getLiteClientInfo": ("Get lite client info.", LITE),
    "getLiteGroupInfo": ("Get lite group info.", LITE),
    "getLiteTopicInfo": ("Get lite topic info.", LITE),
    "getParentTopicInfo": ("Get parent topic info.", LITE),
    "triggerLiteDispatch": ("Trigger lite dispatch.", LITE),
    "switchTimerEngine": (
        "Switch the engine of timer messages.",
        "there is one timer: its messages lie in the commit log, and it survives restarts",
    ),
}


def _refusal(name: str, why: str) -> Callable[[Invocation], Awaitable[None]]:
    async def refuse(call: Invocation) -> None:
        raise ClientError(f"{name} has no meaning here: {why}")

    return refuse


COMMANDS = tuple(
    AdminCommand(
        name, summary, (), _refusal(name, why), needs_name_server=False, takes_anything=True
    )
    for name, (summary, why) in REASONS.items()
)
