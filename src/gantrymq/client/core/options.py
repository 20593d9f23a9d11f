"""Every option of a client, once. The docstring beside each begins with RocketMQ's own name."""

from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from gantrymq.access.credentials import Credentials
from gantrymq.base.arguments import yes_or_no
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.network import split_address
from gantrymq.model import check_topic_name

Positive = Annotated[int, msgspec.Meta(ge=1)]
Whole = Annotated[int, msgspec.Meta(ge=0)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]

MessageModel = Literal["CLUSTERING", "BROADCASTING"]
ConsumeFromWhere = Literal[
    "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"
]
AllocateStrategy = Literal["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]
Compression = Literal["zlib", "lz4", "zstd"]
LatencyTable = Literal["4.9", "5.1.4"]

ZLIB_LEVEL_MAX: Final = 9
TIMESTAMP_FORMAT: Final = "%Y%m%d%H%M%S"
_NO_CREDENTIALS: Final = "credentials must be Credentials(access_key, secret_key)"
_HINTS: Final = {
    "allocate_strategy": "; pass other kinds as `strategy=` from gantrymq.client, "
    "or a function of your own",
    "consume_from_where": '; or say start="first", "last", a datetime or "30m ago" when the '
    "consumer is made",
}


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the option sets: a misspelt name or a value that cannot be is an error at once."""

    def __post_init__(self) -> None:
        for name, kind in _kinds(type(self)).items():
            value = getattr(self, name)
            try:
                msgspec.convert(value, kind)
            except msgspec.ValidationError as error:
                raise ConfigError(_refusal(name, kind, value, error)) from None


Set = TypeVar("Set", bound=Options)


def chosen(kind: type[Set], given: Set | None, name: str = "options") -> Set:
    """The given set, or the defaults; another client's set is refused."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise ConfigError(f"{name} must be {kind.__name__}, not {given!r}")
    return given


def _check_address(address: str) -> None:
    try:
        split_address(address)
    except GantryError:
        raise ConfigError(
            f"namesrv: {address!r} is no address; write host:port, several separated by `;`, as in "
            "10.0.0.1:9876;10.0.0.2:9876"
        ) from None
    if "/" in address:
        raise ConfigError(f"namesrv: write host:port without a scheme or path, not {address!r}")


@cache
def _kinds(options: type[Options]) -> dict[str, Any]:
    return get_type_hints(options, include_extras=True)


def _refusal(name: str, kind: Any, value: object, error: Exception) -> str:
    """What is right, in words; for a choice all there is to choose from."""
    if get_origin(kind) is Literal:
        right = f"is one of {', '.join(map(repr, get_args(kind)))}"
    else:
        right = str(error).split(", got")[0].replace("Expected ", "must be ")
        right = right.replace("`", "").replace("null", "None")
    if name == "credentials":
        return _NO_CREDENTIALS  # what was given may hold a secret
    return f"{name} {right}, not {value!r}{_HINTS.get(name, '')}"


def check_trace(value: bool | str) -> bool | str:
    """Whether trace is written, or the topic that it is written to."""
    if isinstance(value, str) and value:
        return check_topic_name(value)
    return yes_or_no("trace (which may also be a topic)", value)


def check_timestamp(value: str | None) -> None:
    """Whether a `consume_timestamp` is a time."""
    try:
        if value is not None:
            datetime.strptime(value, TIMESTAMP_FORMAT).astimezone()
    except ValueError:
        raise ConfigError(
            f"consume_timestamp is yyyyMMddHHmmss, as in 20260131080000, not {value!r}"
        ) from None


class ClientOptions(Options, frozen=True, kw_only=True):
    """What producers, consumers and the admin have in common."""

    namesrv: str | None = None
    """`namesrvAddr`: name servers, separated by `;`. Unset: see `client.addressing`."""
    credentials: Credentials | None = None
    """`AclClientRPCHook`: the key pair that signs requests. Unset: that of `key_file`, else
    $ROCKETMQ_ACCESS_KEY and $ROCKETMQ_SECRET_KEY; without those nothing is signed."""
    key_file: str | None = None
    """A file with the lines `accessKey:` and `secretKey:`, as RocketMQ's `tools.yml`. One that
    `gantry up --secure` wrote also turns on TLS and has the authority to trust. Unset: the file
    that $GANTRY_CREDENTIALS names."""
    client_ip: str | None = None
    """`clientIP`: the address in the client id. Unset: the machine's own."""
    instance_name: str = "DEFAULT"
    """`instanceName`: the other half of the client id. DEFAULT means unique per process."""
    serialize: Literal["JSON", "ROCKETMQ"] = "JSON"
    """`rocketmq.serialize.type`: how request headers travel; answers are read in either form."""
    route_refresh_ms: Positive = 30_000
    """`pollNameServerInterval`: how often the routes in use are asked for again."""
    heartbeat_interval_ms: Positive = 30_000
    """`heartbeatBrokerInterval`: how often brokers get a heartbeat."""
    persist_offset_interval_ms: Positive = 5_000
    """`persistConsumerOffsetInterval`: how often consumers store their progress."""
    callback_threads: Whole = 0
    """`clientCallbackExecutorThreads`: accepted, no effect; callbacks run on the event loop."""
    call_timeout_ms: Positive = 3_000
    """`mqClientApiTimeout`: how long an administrative call may take."""
    connect_timeout_ms: Positive = 3_000
    """`com.rocketmq.remoting.client.connect.timeout`: how long a connect may take."""
    address_server_host: str | None = None
    """`rocketmq.namesrv.domain`: host of an HTTP page that lists the name servers."""
    address_server_port: Port = 8080
    """The port of that page; RocketMQ writes it into the domain."""
    address_server_path: str = "nsaddr"
    """`rocketmq.namesrv.domain.subgroup`: last part of the page's path."""
    address_refresh_ms: Positive = 120_000
    """How often that page is asked again, so that name servers can be exchanged."""
    use_tls: bool | None = None
    """`useTLS`: whether connections are TLS. Unset: `ROCKETMQ_TLS_ENABLE` of the environment, else
    `tls.enable` of the key file."""
    tls_config: str | None = None
    """`tls.config.file`: a property file with `tls.client.trustCertPath` and the like. Unset:
    `ROCKETMQ_TLS_CONFIG` of the environment, else the key file."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.credentials is not None and not isinstance(self.credentials, Credentials):
            raise ConfigError(_NO_CREDENTIALS)
        for address in (self.namesrv or "").replace(",", ";").split(";"):
            if address.strip():
                _check_address(address.strip())


class ProducerOptions(Options, frozen=True, kw_only=True):
    """How a producer sends."""

    create_topic_key: str = "TBW102"
    """`createTopicKey`: the topic whose route stands in for one that does not exist yet."""
    default_topic_queue_nums: Positive = 4
    """`defaultTopicQueueNums`: queues of a topic made by the first send, at most."""
    send_timeout_ms: Positive = 3_000
    """`sendMsgTimeout`: over all tries of one message."""
    compress_over_bytes: Whole = 4_096
    """`compressMsgBodyOverHowmuch`: bodies of this size and more are compressed."""
    compression: Compression = "zlib"
    """`rocketmq.message.compressType`: zlib, lz4 or zstd."""
    compression_level: Annotated[int, msgspec.Meta(ge=-1, le=22)] = 5
    """`rocketmq.message.compressLevel`."""
    retries: Whole = 2
    """`retryTimesWhenSendFailed`: further tries of `send`, each on another broker."""
    retries_async: Whole = 2
    """`retryTimesWhenSendAsyncFailed`: further tries of `submit`, after transport errors only."""
    retry_when_not_stored_ok: bool = False
    """`retryAnotherBrokerWhenNotStoreOK`: try again when a broker stored, but not as safely."""
    retry_when_busy: bool = False
    """Retry SYSTEM_BUSY too, as clients from 5.3 on do."""
    latency_fault: bool = False
    """`sendLatencyFaultEnable`: avoid slow and failing brokers for a time."""
    latency_table: LatencyTable = "4.9"
    """Which times: `4.9` (550 ms cost 30 s ...) or `5.1.4` (550 ms cost 2 s ...)."""
    max_message_bytes: Positive = 4_194_304
    """`maxMessageSize`: larger bodies are refused here; raise the broker's limit with it."""
    linger_ms: Whole | None = None
    """`batchMaxDelayMs` with `autoBatch`: how long `send` and `submit` hold a message back for
    others of its topic to leave with it as a batch. 0: only those of one turn of the event loop.
    Without it every message leaves alone and at once."""
    batch_max_bytes: Positive = 131_072
    """`batchMaxBytes`: of a batch that `send_all` or `linger_ms` makes."""
    window_messages: Positive = 4_096
    """`backPressureForAsyncSendNum`: messages under way at once, at most."""
    window_bytes: Positive = 64 * 1024 * 1024
    """`backPressureForAsyncSendSize`: body bytes under way at once, at most."""
    check_thread_min: Positive = 1
    """`checkThreadPoolMinSize`: accepted; the number of workers is `check_thread_max`."""
    check_thread_max: Positive = 1
    """`checkThreadPoolMaxSize`: check-backs that are handled at once."""
    check_request_hold_max: Positive = 2_000
    """`checkRequestHoldMax`: check-backs that may wait; the broker asks again about others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compression == "zlib" and self.compression_level > ZLIB_LEVEL_MAX:
            raise ConfigError(f"compression_level of zlib is 0 to 9, not {self.compression_level}")


class ConsumerOptions(Options, frozen=True, kw_only=True):
    """How a consumer that is driven by long polls works (RocketMQ's push consumer)."""

    message_model: MessageModel = "CLUSTERING"
    """`messageModel`: CLUSTERING (shared progress) or BROADCASTING (everybody gets all)."""
    consume_from_where: ConsumeFromWhere = "CONSUME_FROM_LAST_OFFSET"
    """`consumeFromWhere`: where a group without progress begins; also ..._FIRST_OFFSET and
    ..._TIMESTAMP."""
    consume_timestamp: str | None = None
    """`consumeTimestamp`: yyyyMMddHHmmss for ..._TIMESTAMP. Unset: half an hour ago."""
    from_last_skips_young_queues: bool = False
    """Forbid a broker to answer 0 for a queue that still has its first message in memory."""
    allocate_strategy: AllocateStrategy = "AVG"
    """`allocateMessageQueueStrategy`: by the name the broker knows it under."""
    consume_thread_min: Positive = 20
    """`consumeThreadMin`: accepted; the number of workers is `consume_thread_max`."""
    consume_thread_max: Positive = 20
    """`consumeThreadMax`: handlers that may run at once."""
    consume_max_span: Positive = 2_000
    """`consumeConcurrentlyMaxSpan`: largest distance of unfinished offsets in one queue."""
    pull_threshold_for_queue: Positive = 1_000
    """`pullThresholdForQueue`: messages held of one queue before pulling pauses."""
    pull_threshold_size_for_queue_mib: Positive = 100
    """`pullThresholdSizeForQueue`: the same in MiB."""
    pull_interval_ms: Whole = 0
    """`pullInterval`: pause between pulls of one queue."""
    consume_batch_max: Positive = 1
    """`consumeMessageBatchMaxSize`: messages a handler takes at once."""
    pull_batch_size: Positive = 32
    """`pullBatchSize`: messages a pull asks for; up to eight times as many in a backlog."""
    max_reconsume_times: Annotated[int, msgspec.Meta(ge=-1)] = -1
    """`maxReconsumeTimes`: tries before dead letter; -1 is 16."""
    suspend_queue_ms: Positive = 1_000
    """`suspendCurrentQueueTimeMillis`: pause of an ordered queue after a failure."""
    consume_timeout_ms: Positive = 15 * 60_000
    """`consumeTimeout`: a message in a handler for longer is sent back."""
    broker_suspend_ms: Whole = 15_000
    """How long a broker may hold a pull that finds nothing."""
    pull_timeout_ms: Positive = 30_000
    """When the client gives up on a held pull."""
    rebalance_interval_ms: Positive = 20_000
    """`rocketmq.client.rebalance.waitInterval`: how often queues are shared out again."""
    offset_dir: str | None = None
    """`rocketmq.client.localOffsetStoreDir`: progress of broadcasting groups. Unset:
    ~/.rocketmq_offsets."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_timestamp(self.consume_timestamp)


class PullOptions(Options, frozen=True, kw_only=True):
    """How consumers work that ask for messages themselves (pull and lite pull)."""

    message_model: MessageModel = "CLUSTERING"
    """`messageModel`."""
    allocate_strategy: AllocateStrategy = "AVG"
    """`allocateMessageQueueStrategy`."""
    broker_suspend_ms: Whole = 20_000
    """`brokerSuspendMaxTimeMillis`: how long a broker may hold a blocking pull."""
    suspend_timeout_ms: Positive = 30_000
    """`consumerTimeoutMillisWhenSuspend`: when the client gives up on a blocking pull."""
    pull_timeout_ms: Positive = 10_000
    """`consumerPullTimeoutMillis`: when the client gives up on a plain pull."""
    register_topics: tuple[str, ...] = ()
    """`registerTopics`: topics whose queues are shared out in the group."""
    consume_from_where: ConsumeFromWhere = "CONSUME_FROM_LAST_OFFSET"
    """`consumeFromWhere` (lite pull)."""
    consume_timestamp: str | None = None
    """`consumeTimestamp` (lite pull)."""
    auto_commit: bool = True
    """`autoCommit` (lite pull)."""
    auto_commit_interval_ms: Positive = 5_000
    """`autoCommitIntervalMillis` (lite pull)."""
    pull_batch_size: Positive = 10
    """`pullBatchSize` (lite pull)."""
    poll_timeout_ms: Positive = 5_000
    """`pollTimeoutMillis` (lite pull): how long `poll` waits without a `timeout`."""
    pull_threshold_for_all: Positive = 10_000
    """`pullThresholdForAll` (lite pull): messages held in all before pulling pauses."""
    pull_threshold_for_queue: Positive = 1_000
    """`pullThresholdForQueue` (lite pull)."""
    pull_threshold_size_for_queue_mib: Positive = 100
    """`pullThresholdSizeForQueue` (lite pull)."""
    consume_max_span: Positive = 2_000
    """`consumeMaxSpan` (lite pull)."""
    topic_metadata_check_interval_ms: Positive = 30_000
    """`topicMetadataCheckIntervalMillis` (lite pull with `assign`)."""
    rebalance_interval_ms: Positive = 20_000
    """`rocketmq.client.rebalance.waitInterval`."""
    offset_dir: str | None = None
    """`rocketmq.client.localOffsetStoreDir`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_timestamp(self.consume_timestamp)


def with_namesrv(options: ClientOptions | None, namesrv: str | None) -> ClientOptions:
    """The options with the address given as an argument, which is the strongest."""
    options = chosen(ClientOptions, options, "client")
    if namesrv is None:
        return options
    fields = {name: getattr(options, name) for name in options.__struct_fields__}
    return ClientOptions(**{**fields, "namesrv": namesrv})
