"""All metrics of brokers and name servers, each declared once. Pure.

Names, labels and kinds are those that Prometheus reads from RocketMQ 5.3.3, where it has the
metric; ours begin with `gantrymq_`. RocketMQ's page appends a unit to many names, sometimes a wrong
one; what is pushed has the names without it. `docs/metrics.md` is printed from here.
"""

from typing import Final, Literal

from gantrymq.metrics.metric import Metric

_STORE = "storage_type", "storage_medium"
_LAG = "consumer_group", "topic", "is_retry", "is_system"

CONSOLE: Final = ""
"""No setting turns off the metrics of a console."""

_all: list[Metric] = []


def _declare(
    switch: str,
    kind: Literal["counter", "gauge", "histogram"],
    name: str,
    text: str,
    *labels: str,
    unit: str = "",
) -> Metric:
    metric = Metric(name, kind, text, labels, unit, switch)
    _all.append(metric)
    return metric


# The broker itself

_OF = "enableStatsMetrics"
PROCESSOR_WATERMARK: Final = _declare(
    _OF, "gauge", "rocketmq_processor_watermark",
    "Requests that wait to be worked at", "processor", unit="requests",
)  # fmt: skip
BROKER_PERMISSION: Final = _declare(
    _OF, "gauge", "rocketmq_broker_permission",
    "What clients may do: 6 read and write, 4 read, 2 write",
)  # fmt: skip
TOPIC_NUMBER: Final = _declare(_OF, "gauge", "rocketmq_topic_number", "Topics", unit="topics")
GROUP_NUMBER: Final = _declare(
    _OF, "gauge", "rocketmq_consumer_group_number", "Consumer groups", unit="groups"
)
INFO: Final = _declare(
    _OF, "gauge", "gantrymq_info",
    "1, with what runs: release, kernel (compiled or pure), Python, role",
    "version", "kernel", "python", "role",
)  # fmt: skip
START_TIME: Final = _declare(
    _OF, "gauge", "gantrymq_start_time_seconds", "When the server started", unit="seconds"
)
RESIDENT: Final = _declare(
    _OF, "gauge", "gantrymq_resident_memory_bytes", "Memory of the process (RSS)", unit="bytes"
)
OPEN_FILES: Final = _declare(
    _OF, "gauge", "gantrymq_open_descriptors", "Open files and sockets", unit="descriptors"
)
OPEN_FILES_MAX: Final = _declare(
    _OF, "gauge", "gantrymq_max_descriptors", "The most that may be open", unit="descriptors"
)
CPU_SECONDS: Final = _declare(
    _OF, "counter", "gantrymq_cpu_seconds_total",
    "Processor time of the process", unit="seconds",
)  # fmt: skip
LOOP_LAG: Final = _declare(
    _OF, "histogram", "gantrymq_loop_lag_seconds",
    "How late the event loop ran a timer, looked at ten times a second", unit="seconds",
)  # fmt: skip
REFUSED: Final = _declare(
    _OF, "counter", "gantrymq_refused_total",
    "What a limit refused, by the name of its setting", "limit",
)  # fmt: skip
CONNECTIONS: Final = _declare(
    _OF, "gauge", "gantrymq_connections", "Open connections of clients and brokers",
    unit="connections",
)  # fmt: skip
HELD_PULLS: Final = _declare(
    _OF, "gauge", "gantrymq_held_pulls",
    "Long polls that wait for messages, by kind: pull, pop, notification", "kind",
    unit="requests",
)  # fmt: skip
EVENTS: Final = _declare(
    _OF, "counter", "gantrymq_events_total",
    "What happens seldom and should be noticed, such as conflicting subscriptions", "event",
)  # fmt: skip
BROKERS: Final = _declare(
    _OF, "gauge", "gantrymq_registered_brokers",
    "Brokers that a name server knows", "broker_cluster", unit="brokers",
)  # fmt: skip
ROUTED_TOPICS: Final = _declare(
    _OF, "gauge", "gantrymq_routed_topics", "Topics that a name server knows", unit="topics"
)
SCRAPE_SECONDS: Final = _declare(
    _OF, "gauge", "gantrymq_scrape_seconds",
    "How long the last collection of all metrics took, and its longest turn of the event loop",
    "part", unit="seconds",
)  # fmt: skip

# Messages

_OF = "enableRequestMetrics"
_IN = "topic", "message_type", "is_system"
_OUT = "topic", "consumer_group", "is_system", "is_retry"
MESSAGES_IN: Final = _declare(
    _OF, "counter", "rocketmq_messages_in_total", "Messages stored", *_IN, unit="messages"
)
MESSAGES_OUT: Final = _declare(
    _OF, "counter", "rocketmq_messages_out_total", "Messages sent to consumers", *_OUT,
    unit="messages",
)  # fmt: skip
THROUGHPUT_IN: Final = _declare(
    _OF, "counter", "rocketmq_throughput_in_total", "Bytes of messages stored", *_IN, unit="bytes"
)
THROUGHPUT_OUT: Final = _declare(
    _OF, "counter", "rocketmq_throughput_out_total", "Bytes of messages sent to consumers", *_OUT,
    unit="bytes",
)  # fmt: skip
MESSAGE_SIZE: Final = _declare(
    _OF, "histogram", "rocketmq_message_size", "Sizes of stored messages", *_IN, unit="bytes"
)
SEND_LATENCY: Final = _declare(
    _OF, "histogram", "gantrymq_send_latency_seconds",
    "From the write to the answer of a send: with SYNC_FLUSH the flush is in it, with SYNC_MASTER "
    "and raft groups the copies", unit="seconds",
)  # fmt: skip
SEND_FAILED: Final = _declare(
    _OF, "counter", "gantrymq_send_failed_total", "Messages that could not be stored",
    unit="messages",
)  # fmt: skip

# Clients

_OF = "enableConnectionMetrics"
PRODUCER_CONNECTIONS: Final = _declare(
    _OF, "gauge", "rocketmq_producer_connections", "Connected producers",
    "language", "version", "protocol_type", unit="connections",
)  # fmt: skip
CONSUMER_CONNECTIONS: Final = _declare(
    _OF, "gauge", "rocketmq_consumer_connections", "Connected consumers",
    "consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system",
    unit="connections",
)  # fmt: skip

# Groups

_OF = "enableLagAndDlqMetrics"
LAG_MESSAGES: Final = _declare(
    _OF, "gauge", "rocketmq_consumer_lag_messages",
    "Messages that a group has not finished", *_LAG, unit="messages",
)  # fmt: skip
LAG_LATENCY: Final = _declare(
    _OF, "gauge", "rocketmq_consumer_lag_latency_milliseconds",
    "Age of the oldest message that a group has not finished", *_LAG, unit="milliseconds",
)  # fmt: skip
INFLIGHT: Final = _declare(
    _OF, "gauge", "rocketmq_consumer_inflight_messages",
    "Messages that a group was sent and has not finished", *_LAG, unit="messages",
)  # fmt: skip
QUEUEING_LATENCY: Final = _declare(
    _OF, "gauge", "rocketmq_consumer_queueing_latency_milliseconds",
    "Age of the oldest message that a group was not sent yet", *_LAG, unit="milliseconds",
)  # fmt: skip
READY: Final = _declare(
    _OF, "gauge", "rocketmq_consumer_ready_messages",
    "Messages that a group was not sent yet", *_LAG, unit="messages",
)  # fmt: skip
DEAD: Final = _declare(
    _OF, "counter", "rocketmq_send_to_dlq_messages_total",
    "Messages that became dead letters", "consumer_group", "topic", "is_system", unit="messages",
)  # fmt: skip
QUEUE_LAG: Final = _declare(
    _OF, "gauge", "gantrymq_queue_lag_messages",
    "The lag of one queue; with metricsLagPerQueue=true", *_LAG, "queue_id", unit="messages",
)  # fmt: skip

# Transactions

_OF = "enableTransactionMetrics"
HALF: Final = _declare(
    _OF, "gauge", "rocketmq_half_messages", "Half messages without a decision", "topic",
    unit="messages",
)  # fmt: skip
COMMITTED: Final = _declare(
    _OF, "counter", "rocketmq_commit_messages_total", "Committed half messages", "topic",
    unit="messages",
)  # fmt: skip
ROLLED_BACK: Final = _declare(
    _OF, "counter", "rocketmq_rollback_messages_total", "Half messages that were rolled back",
    "topic", unit="messages",
)  # fmt: skip
FINISH_LATENCY: Final = _declare(
    _OF, "histogram", "rocketmq_finish_message_latency_milliseconds",
    "From the birth of a half message to its commit; RocketMQ's name says milliseconds, its values "
    "are seconds, and so are ours",
    "topic", unit="seconds",
)  # fmt: skip

# Requests

_OF = "enableRemotingMetrics"
RPC_LATENCY: Final = _declare(
    _OF, "histogram", "rocketmq_rpc_latency_milliseconds",
    "Duration of requests that are not hot: not of sends, pulls, pops and heartbeats",
    "protocol_type", "request_code", "response_code", "is_long_polling", "result",
    unit="milliseconds",
)  # fmt: skip

# The store

_OF = "enableMessageStoreMetrics"
STORAGE_SIZE: Final = _declare(
    _OF,
    "gauge",
    "rocketmq_storage_size_bytes",
    "Used bytes of the store's disk",
    *_STORE,
    unit="bytes",
)
FLUSH_BEHIND: Final = _declare(
    _OF, "gauge", "rocketmq_storage_flush_behind_bytes",
    "Bytes of the log that are not flushed", *_STORE, unit="bytes",
)  # fmt: skip
DISPATCH_BEHIND: Final = _declare(
    _OF, "gauge", "rocketmq_storage_dispatch_behind_bytes",
    "Bytes of the log that queues and index do not have", *_STORE, unit="bytes",
)  # fmt: skip
RESERVE_TIME: Final = _declare(
    _OF, "gauge", "rocketmq_storage_message_reserve_time_milliseconds",
    "Age of the oldest message", *_STORE, unit="milliseconds",
)  # fmt: skip
TIMER_ENQUEUE_LAG: Final = _declare(
    _OF, "gauge", "rocketmq_timer_enqueue_lag",
    "Timer messages that are not scheduled yet", *_STORE, unit="messages",
)  # fmt: skip
TIMER_DEQUEUE_LAG: Final = _declare(
    _OF, "gauge", "rocketmq_timer_dequeue_lag",
    "1 if a timer message is due and not delivered, 0 if none is", *_STORE, unit="messages",
)  # fmt: skip
TIMER_DEQUEUE_LATENCY: Final = _declare(
    _OF, "gauge", "rocketmq_timer_dequeue_latency_milliseconds",
    "How late the first undelivered timer message is", *_STORE, unit="milliseconds",
)  # fmt: skip
TIMING: Final = _declare(
    _OF, "gauge", "rocketmq_timing_messages", "Timer messages that wait", *_STORE,
    unit="messages",
)  # fmt: skip
TIMER_ENQUEUED: Final = _declare(
    _OF, "counter", "rocketmq_timer_enqueue_total", "Timer messages scheduled", *_STORE,
    unit="messages",
)  # fmt: skip
TIMER_DEQUEUED: Final = _declare(
    _OF, "counter", "rocketmq_timer_dequeue_total", "Timer messages delivered", *_STORE,
    unit="messages",
)  # fmt: skip
FLUSH_SECONDS: Final = _declare(
    _OF, "histogram", "gantrymq_flush_seconds", "Duration of a flush of the log", unit="seconds"
)
DISK_FREE: Final = _declare(
    _OF, "gauge", "gantrymq_disk_free_bytes", "Free bytes of the store's disk", unit="bytes"
)
DISK_USED: Final = _declare(
    _OF, "gauge", "gantrymq_disk_used_ratio", "Used part of the commit log's disk, 0 to 1"
)
LOG_BYTES: Final = _declare(
    _OF, "gauge", "gantrymq_log_bytes", "Bytes of the commit log", unit="bytes"
)
LOG_END: Final = _declare(
    _OF, "counter", "gantrymq_log_end_bytes_total", "Where the commit log ends", unit="bytes"
)
WRITABLE: Final = _declare(
    _OF, "gauge", "gantrymq_store_writable", "1 if the store takes messages, 0 if it refuses them"
)
COPY_LAG: Final = _declare(
    _OF, "gauge", "gantrymq_replication_lag_bytes",
    "Bytes of the log that a slave or a follower does not have",
    "peer", "kind", unit="bytes",
)  # fmt: skip
COPY_SILENCE: Final = _declare(
    _OF, "gauge", "gantrymq_replication_silence_seconds",
    "How long ago a slave acknowledged something", "peer", unit="seconds",
)  # fmt: skip
IN_SYNC: Final = _declare(
    _OF, "gauge", "gantrymq_in_sync_copies", "Slaves or followers that are in sync",
    unit="brokers",
)  # fmt: skip
LEADS: Final = _declare(
    _OF, "gauge", "gantrymq_raft_leads", "1 if this member leads its raft group, 0 if it follows"
)
TERM: Final = _declare(_OF, "gauge", "gantrymq_raft_term", "The term of the raft group")

# POP

_OF = "enablePopMetrics"
POP_CHECKPOINTS: Final = _declare(
    _OF, "gauge", "rocketmq_pop_checkpoint_buffer_size",
    "Checkpoints that are not settled", unit="checkpoints",
)  # fmt: skip
REVIVE_LAG: Final = _declare(
    _OF, "gauge", "rocketmq_pop_revive_lag_milliseconds",
    "Records of the revive topic that its progress has not passed; a number, whatever RocketMQ's "
    "name says", "queue_id", unit="messages",
)  # fmt: skip
REVIVE_LATENCY: Final = _declare(
    _OF, "gauge", "rocketmq_pop_revive_latency_milliseconds",
    "How late the first due checkpoint of a revive queue is", "queue_id", unit="milliseconds",
)  # fmt: skip
REVIVE_IN: Final = _declare(
    _OF, "counter", "rocketmq_pop_revive_in_message_total",
    "Checkpoints and acknowledgements written",
    "consumer_group", "topic", "revive_message_type", "put_status",
    unit="messages",
)  # fmt: skip
REVIVE_RETRIES: Final = _declare(
    _OF, "counter", "rocketmq_pop_revive_retry_messages_total",
    "Popped messages that were given out again", "consumer_group", "topic", "put_status",
    unit="messages",
)  # fmt: skip

# The console

_OF = CONSOLE
CONSOLE_REQUESTS: Final = _declare(
    _OF, "histogram", "gantrymq_console_request_seconds",
    "Duration of requests to the console, by what was asked for (page, api, file) and the class of "
    "the answer, such as 2xx", "kind", "status", unit="seconds",
)  # fmt: skip
CONSOLE_JOBS: Final = _declare(
    _OF, "gauge", "gantrymq_console_jobs", "Jobs of the console that it remembers", "state",
    unit="jobs",
)  # fmt: skip
CONSOLE_CLUSTERS: Final = _declare(
    _OF, "gauge", "gantrymq_console_cluster_up",
    "1 if the last look at a cluster found all of it, 0 if something did not answer",
    "cluster_name",
)  # fmt: skip

METRICS: Final[tuple[Metric, ...]] = tuple(_all)

LEFT_OUT: Final = {
    "rocketmq_topic_create_execution_time_milliseconds": "creating a topic is a request like "
    'others: `rocketmq_rpc_latency_milliseconds` with `request_code="update_and_create_topic"`',
    "rocketmq_consumer_group_create_execution_time_milliseconds": "likewise, with "
    '`request_code="update_and_create_subscriptiongroup"`',
    "rocketmq_timer_enqueue_latency_milliseconds": "timer messages are scheduled in the order of "
    "their topic and not by a wheel that reads ahead; `rocketmq_timer_enqueue_lag` counts them",
    "rocketmq_timer_message_snapshot": "the schedule is a sorted list and not a wheel with slots "
    "to count; `gantry waiting` lists what waits",
    "rocketmq_delay_message_latency": "it would count delays that producers ask for, which is no "
    "figure of the broker",
    "rocketmq_pop_buffer_scan_time_consume": "checkpoints are kept by due time, there is no "
    "buffer that is scanned",
    "rocketmq_pop_offset_buffer_size": "there is no buffer of offsets beside the checkpoints",
    "rocketmq_pop_revive_out_message_total": "the revive topic is read at a start only; live, its "
    "records are in memory",
    "rocketmq_rocksdb_*": "there is no RocksDB",
    "rocketmq_tiered_store_*": "there is no tiered store",
    "role, dledger_disk_usage, active_broker_num, request_total, dledger_op_total, "
    "election_total, request_latency, dledger_op_latency": "there is no controller: see "
    "`gantrymq_raft_leads`, `gantrymq_raft_term`, `gantrymq_replication_lag_bytes`",
    "rocketmq_proxy_up": "there is no proxy",
}
"""What RocketMQ 5 has besides, and why it is not here."""

DIFFERENCES: Final = {
    MESSAGES_IN: "`message_type` is the type of the topic, or of the way that a message came; "
    "properties are not looked at, so a message with a sharding key is `normal` in a topic "
    "without a type",
    MESSAGES_OUT: "`is_retry` is there for what is pulled, too; RocketMQ has it for POP only",
    THROUGHPUT_OUT: "`is_retry` as with `rocketmq_messages_out_total`",
    RPC_LATENCY: "sends, pulls, pops and heartbeats are not in it: counting each would cost them "
    "time, and `gantrymq_send_latency_seconds` has the sends; `result` is always `success`, "
    "`response_code` says whether it was one",
    PROCESSOR_WATERMARK: "`processor` is always `send`: nothing else waits in a queue",
    LAG_MESSAGES: "groups without a connected member are in it as well",
    TIMING: "no label `topic`: the schedule is not kept by topic",
    TIMER_ENQUEUED: "no label `topic`",
    TIMER_DEQUEUED: "no label `topic`",
    TIMER_DEQUEUE_LAG: "0 or 1, not a number of messages",
}
"""Where one of RocketMQ's metrics says something else than there."""
