"""Every option of a client, once. The docstring beside each begins with RocketMQ's own name."""

from typing import Literal

import msgspec

from gantrymq.base.errors import ConfigError


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the option sets: a misspelt name is an error, never ignored."""


class ClientOptions(Options, frozen=True, kw_only=True):
    """What producers, consumers and the admin have in common."""

    namesrv: str | None = None
    """`namesrvAddr`: name servers, separated by `;`. Unset: see `client.addressing`."""
    client_ip: str | None = None
    """`clientIP`: the address in the client id. Unset: the machine's own."""
    instance_name: str = "DEFAULT"
    """`instanceName`: the other half of the client id. DEFAULT means unique per process."""
    serialize: Literal["JSON", "ROCKETMQ"] = "JSON"
    """`rocketmq.serialize.type`: how request headers travel; answers are read in either form."""
    route_refresh_ms: int = 30_000
    """`pollNameServerInterval`: how often the routes in use are asked for again."""
    heartbeat_interval_ms: int = 30_000
    """`heartbeatBrokerInterval`: how often brokers are told that this client lives."""
    persist_offset_interval_ms: int = 5_000
    """`persistConsumerOffsetInterval`: how often consumers store their progress."""
    callback_threads: int = 0
    """`clientCallbackExecutorThreads`: accepted, no effect; callbacks run on the event loop."""
    call_timeout_ms: int = 3_000
    """`mqClientApiTimeout`: how long an administrative call may take."""
    connect_timeout_ms: int = 3_000
    """`com.rocketmq.remoting.client.connect.timeout`: how long a connect may take."""
    address_server_host: str | None = None
    """`rocketmq.namesrv.domain`: host of an HTTP page that lists the name servers."""
    address_server_port: int = 8080
    """The port of that page; RocketMQ writes it into the domain."""
    address_server_path: str = "nsaddr"
    """`rocketmq.namesrv.domain.subgroup`: last part of the page's path."""
    address_refresh_ms: int = 120_000
    """How often that page is asked again, so that name servers can be exchanged."""

    def __post_init__(self) -> None:
        check_positive(
            self, "route_refresh_ms", "heartbeat_interval_ms", "persist_offset_interval_ms",
            "call_timeout_ms", "connect_timeout_ms", "address_refresh_ms",
        )  # fmt: skip


class ProducerOptions(Options, frozen=True, kw_only=True):
    """How a producer sends."""

    create_topic_key: str = "TBW102"
    """`createTopicKey`: the topic whose route stands in for one that does not exist yet."""
    default_topic_queue_nums: int = 4
    """`defaultTopicQueueNums`: queues of a topic made by the first send, at most."""
    send_timeout_ms: int = 3_000
    """`sendMsgTimeout`: over all tries of one message."""
    compress_over_bytes: int = 4_096
    """`compressMsgBodyOverHowmuch`: bodies of this size and more are compressed."""
    compression: str = "zlib"
    """`rocketmq.message.compressType`: zlib, lz4 or zstd."""
    compression_level: int = 5
    """`rocketmq.message.compressLevel`."""
    retries: int = 2
    """`retryTimesWhenSendFailed`: further tries of `send`, each on another broker."""
    retries_async: int = 2
    """`retryTimesWhenSendAsyncFailed`: further tries of `submit`, after transport errors only."""
    retry_when_not_stored_ok: bool = False
    """`retryAnotherBrokerWhenNotStoreOK`: try again when a broker stored, but not as safely."""
    retry_when_busy: bool = False
    """Retry SYSTEM_BUSY too, as clients from 5.3 on do."""
    latency_fault: bool = False
    """`sendLatencyFaultEnable`: avoid slow and failing brokers for a time."""
    latency_table: str = "4.9"
    """Which times: `4.9` (550 ms cost 30 s ...) or `5.1.4` (550 ms cost 2 s ...)."""
    max_message_bytes: int = 4_194_304
    """`maxMessageSize`: larger bodies are refused here; raise the broker's limit with it."""
    window_messages: int = 4_096
    """`backPressureForAsyncSendNum`: messages under way at once, at most."""
    window_bytes: int = 64 * 1024 * 1024
    """`backPressureForAsyncSendSize`: body bytes under way at once, at most."""
    check_thread_min: int = 1
    """`checkThreadPoolMinSize`: accepted; the number of workers is `check_thread_max`."""
    check_thread_max: int = 1
    """`checkThreadPoolMaxSize`: questions about transactions that are worked on at once."""
    check_request_hold_max: int = 2_000
    """`checkRequestHoldMax`: questions that may wait; more are left to the next time."""

    def __post_init__(self) -> None:
        check_positive(
            self, "default_topic_queue_nums", "send_timeout_ms", "max_message_bytes",
            "window_messages", "window_bytes", "check_thread_min", "check_thread_max",
            "check_request_hold_max",
        )  # fmt: skip
        if self.compression not in ("zlib", "lz4", "zstd"):
            raise ConfigError(f"compression is zlib, lz4 or zstd, not {self.compression!r}")
        if self.latency_table not in ("4.9", "5.1.4"):
            raise ConfigError(f"latency_table is 4.9 or 5.1.4, not {self.latency_table!r}")
        if self.retries < 0 or self.retries_async < 0:
            raise ConfigError("retries and retries_async are 0 or more")


class ConsumerOptions(Options, frozen=True, kw_only=True):
    """How a consumer that is driven by long polls works (RocketMQ's push consumer)."""

    message_model: str = "CLUSTERING"
    """`messageModel`: CLUSTERING (shared progress) or BROADCASTING (everybody gets all)."""
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    """`consumeFromWhere`: where a group without progress begins; also ..._FIRST_OFFSET and
    ..._TIMESTAMP."""
    consume_timestamp: str | None = None
    """`consumeTimestamp`: yyyyMMddHHmmss for ..._TIMESTAMP. Unset: half an hour ago."""
    from_last_skips_young_queues: bool = False
    """Forbid a broker to answer 0 for a queue that still has its first message in memory."""
    allocate_strategy: str = "AVG"
    """`allocateMessageQueueStrategy`: by the name the broker knows it under."""
    consume_thread_min: int = 20
    """`consumeThreadMin`: accepted; the number of workers is `consume_thread_max`."""
    consume_thread_max: int = 20
    """`consumeThreadMax`: handlers that may run at once."""
    consume_max_span: int = 2_000
    """`consumeConcurrentlyMaxSpan`: largest distance of unfinished offsets in one queue."""
    pull_threshold_for_queue: int = 1_000
    """`pullThresholdForQueue`: messages held of one queue before pulling pauses."""
    pull_threshold_size_for_queue_mib: int = 100
    """`pullThresholdSizeForQueue`: the same in MiB."""
    pull_interval_ms: int = 0
    """`pullInterval`: pause between pulls of one queue."""
    consume_batch_max: int = 1
    """`consumeMessageBatchMaxSize`: messages a handler takes at once."""
    pull_batch_size: int = 32
    """`pullBatchSize`: messages a pull asks for."""
    max_reconsume_times: int = -1
    """`maxReconsumeTimes`: tries before dead letter; -1 is 16."""
    suspend_queue_ms: int = 1_000
    """`suspendCurrentQueueTimeMillis`: pause of an ordered queue after a failure."""
    consume_timeout_ms: int = 15 * 60_000
    """`consumeTimeout`: a message in a handler for longer is sent back."""
    broker_suspend_ms: int = 15_000
    """How long a broker may hold a pull that finds nothing."""
    pull_timeout_ms: int = 30_000
    """When the client gives up on a held pull."""
    rebalance_interval_ms: int = 20_000
    """`rocketmq.client.rebalance.waitInterval`: how often queues are shared out again."""
    offset_dir: str | None = None
    """`rocketmq.client.localOffsetStoreDir`: progress of broadcasting groups. Unset:
    ~/.rocketmq_offsets."""


class PullOptions(Options, frozen=True, kw_only=True):
    """How consumers work that ask for messages themselves (pull and lite pull)."""

    message_model: str = "CLUSTERING"
    """`messageModel`."""
    allocate_strategy: str = "AVG"
    """`allocateMessageQueueStrategy`."""
    broker_suspend_ms: int = 20_000
    """`brokerSuspendMaxTimeMillis`: how long a broker may hold a blocking pull."""
    suspend_timeout_ms: int = 30_000
    """`consumerTimeoutMillisWhenSuspend`: when the client gives up on a blocking pull."""
    pull_timeout_ms: int = 10_000
    """`consumerPullTimeoutMillis`: when the client gives up on a plain pull."""
    register_topics: tuple[str, ...] = ()
    """`registerTopics`: topics whose queues are shared out in the group."""
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    """`consumeFromWhere` (lite pull)."""
    consume_timestamp: str | None = None
    """`consumeTimestamp` (lite pull)."""
    auto_commit: bool = True
    """`autoCommit` (lite pull)."""
    auto_commit_interval_ms: int = 5_000
    """`autoCommitIntervalMillis` (lite pull)."""
    pull_batch_size: int = 10
    """`pullBatchSize` (lite pull)."""
    poll_timeout_ms: int = 5_000
    """`pollTimeoutMillis` (lite pull): how long `poll` waits when it is told nothing."""
    pull_threshold_for_all: int = 10_000
    """`pullThresholdForAll` (lite pull): messages held in all before pulling pauses."""
    pull_threshold_for_queue: int = 1_000
    """`pullThresholdForQueue` (lite pull)."""
    pull_threshold_size_for_queue_mib: int = 100
    """`pullThresholdSizeForQueue` (lite pull)."""
    consume_max_span: int = 2_000
    """`consumeMaxSpan` (lite pull)."""
    topic_metadata_check_interval_ms: int = 30_000
    """`topicMetadataCheckIntervalMillis` (lite pull with `assign`)."""
    rebalance_interval_ms: int = 20_000
    """`rocketmq.client.rebalance.waitInterval`."""
    offset_dir: str | None = None
    """`rocketmq.client.localOffsetStoreDir`."""


def check_positive(options: Options, *names: str) -> None:
    """Every named option must be above 0."""
    for name in names:
        if getattr(options, name) <= 0:
            raise ConfigError(f"{name} must be above 0, not {getattr(options, name)}")
