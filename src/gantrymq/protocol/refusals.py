"""Requests of RocketMQ's tools that our servers refuse, each with the reason.

The answer's code is REQUEST_CODE_NOT_SUPPORTED, by which tools know that asking again is useless.
"""

from typing import Final

from gantrymq.protocol.codes import RequestCode as Code

_ROCKSDB = (
    "this broker has no RocksDB: its queues and tables are RocketMQ's files, "
    "which tools can copy as they are"
)
_COLD = (
    "this broker does not limit reads of old messages: workers read them from disk, "
    "and other requests do not wait for that"
)
_CONTAINER = "a process runs one broker: start or stop the process instead"
_CONTROLLER = (
    "there is no controller here: brokers of a raft group elect their master themselves "
    "(enableDLegerCommitLog), other masters are those of their settings"
)
_LITE = "light topics (LMQ) are not built: a topic of its own costs little here"
_ACTING = "no slave acts as a master here, so nobody needs to know the smallest brokerId"

REFUSED: Final = {
    Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _ROCKSDB,
    Code.EXPORT_ROCKSDB_CONFIG: _ROCKSDB,
    Code.UPDATE_AND_CREATE_STATIC_TOPIC: (
        "static topics are not built: a queue stays on its broker; "
        "create a topic on each broker instead (updateTopic -c)"
    ),
    Code.ADD_BROKER: _CONTAINER,
    Code.REMOVE_BROKER: _CONTAINER,
    Code.NOTIFY_MIN_BROKER_ID_CHANGE: _ACTING,
    Code.RESET_MASTER_FLUSH_OFFSET: (
        "a slave keeps no flush offset of its master: it compares its log with the master's"
    ),
    Code.CONTROLLER_ALTER_SYNC_STATE_SET: _CONTROLLER,
    Code.CONTROLLER_ELECT_MASTER: _CONTROLLER,
    Code.CONTROLLER_REGISTER_BROKER: _CONTROLLER,
    Code.CONTROLLER_GET_REPLICA_INFO: _CONTROLLER,
    Code.CONTROLLER_GET_METADATA_INFO: _CONTROLLER,
    Code.CONTROLLER_GET_SYNC_STATE_DATA: _CONTROLLER,
    Code.NOTIFY_BROKER_ROLE_CHANGED: _CONTROLLER,
    Code.UPDATE_CONTROLLER_CONFIG: _CONTROLLER,
    Code.GET_CONTROLLER_CONFIG: _CONTROLLER,
    Code.CLEAN_BROKER_DATA: _CONTROLLER,
    Code.CONTROLLER_GET_NEXT_BROKER_ID: _CONTROLLER,
    Code.CONTROLLER_APPLY_BROKER_ID: _CONTROLLER,
    Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
    Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
    Code.GET_COLD_DATA_FLOW_CTR_INFO: _COLD,
    Code.SET_COMMITLOG_READ_MODE: (
        "this broker maps no files, so there is no read-ahead to set: the kernel reads ahead "
        "for whoever reads in order"
    ),
    Code.SWITCH_TIMER_ENGINE: (
        "timers have one engine here, and nothing of it lies in RocksDB: there is none to switch to"
    ),
    Code.POP_ROLLBACK: (
        "popped messages are kept in RocketMQ's revive topic here, never in RocksDB: "
        "there is nothing to bring back"
    ),
    Code.POP_LITE_MESSAGE: _LITE,
    Code.LITE_SUBSCRIPTION_CTL: _LITE,
    Code.ACK_LITE_MESSAGE: _LITE,
    Code.GET_BROKER_LITE_INFO: _LITE,
    Code.GET_PARENT_TOPIC_INFO: _LITE,
    Code.GET_LITE_TOPIC_INFO: _LITE,
    Code.GET_LITE_CLIENT_INFO: _LITE,
    Code.GET_LITE_GROUP_INFO: _LITE,
    Code.TRIGGER_LITE_DISPATCH: _LITE,
}
"""Code to reason; a broker and a name server answer with that one sentence."""
