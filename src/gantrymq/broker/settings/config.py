"""A broker's settings, under RocketMQ's names and with RocketMQ's defaults."""

import os.path
import re
import socket
from collections.abc import Callable
from typing import Literal

import msgspec

from gantrymq.base.config import WrittenSettings, settings
from gantrymq.base.errors import ConfigError
from gantrymq.broker.settings.limits import check_address, check_hours, check_limits
from gantrymq.broker.settings.rocketmq_keys import IGNORED_KEYS
from gantrymq.store.config import StoreConfig

_HOME = os.path.expanduser("~")
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_OLD_NAMES = {
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
}
QUEUE_ENTRY_BYTES = 20
_NO_SLAVES = "copies on slaves are not built; run a master: brokerRole=ASYNC_MASTER, brokerId=0"
_NO_RAFT = "raft groups are not built; remove the line and run a single master"
_NO_CONTROLLER = "brokers that a controller elects are not built; remove the line, run a master"
_NO_CONTAINER = "one process runs one broker: start mqbroker -c for each of these files"
_NO_ACCESS_CONTROL = "access control is not built; remove the line, and keep strangers out"
_NO_LIGHT_QUEUES = "light queues (LMQ) are not built; remove the line"
_NOT_BUILT: dict[str, tuple[Callable[[str], bool], str]] = {
    "enableControllerMode": (lambda value: value == "true", _NO_CONTROLLER),
    "enableDLegerCommitLog": (lambda value: value == "true", _NO_RAFT),
    "brokerConfigPaths": (bool, _NO_CONTAINER),
    "brokerRole": (lambda value: value in ("sync_master", "slave"), _NO_SLAVES),
    "brokerId": (lambda value: value != "0", _NO_SLAVES),
    "aclEnable": (lambda value: value == "true", _NO_ACCESS_CONTROL),
    "authenticationEnabled": (lambda value: value == "true", _NO_ACCESS_CONTROL),
    "authorizationEnabled": (lambda value: value == "true", _NO_ACCESS_CONTROL),
    "useTLS": (
        lambda value: value == "true",
        "encrypted connections are not built; remove the line, and use a tunnel between machines",
    ),
    "storeType": (
        lambda value: value != "default",
        "only the store of files is built; write storeType=default, or remove the line",
    ),
    "messageStorePlugIn": (bool, "plug-ins in Java cannot be loaded; remove the line"),
    "enableLmq": (lambda value: value == "true", _NO_LIGHT_QUEUES),
    "enableMultiDispatch": (lambda value: value == "true", _NO_LIGHT_QUEUES),
}
"""Ignoring these would promise what nobody keeps, so they stop the start: when, and what to do."""
_HARMLESS = {"brokerId": "0", "storeType": "default"}
"""What those mean that are not written down."""
OTHER_PORTS = (-2, 1)
"""How far the fast and the HA port are from the port of a broker that names only that."""


class BrokerConfig(msgspec.Struct, kw_only=True, rename="camel"):
    """What a broker is told. All its parts share one, and read it when they need it.

    Only `LiveSettings` changes one, and only what is in its list `LIVE`.
    """

    broker_name: str = "broker-a"
    """Brokers of one cluster have different names."""
    broker_cluster_name: str = "DefaultCluster"
    """The cluster that the broker belongs to."""
    broker_id: int = 0
    """0 is the master; slaves, whose ids are above 0, are not built yet."""
    broker_ip1: str = msgspec.field(name="brokerIP1", default="")
    """The address clients are told; found by itself when empty."""
    broker_ip2: str = msgspec.field(name="brokerIP2", default="")
    """RocketMQ's address for slaves; without effect here."""
    bind_address: str = "0.0.0.0"
    """The address that the ports are opened on; 0.0.0.0 is every one."""
    listen_port: int = 10911
    """The port for clients; 0 picks a free one."""
    fast_listen_port: int = -1
    """The second port, without pulls; -1 is listenPort - 2."""
    ha_listen_port: int = -1
    """The port that is announced to slaves, of which there are none; -1 is listenPort + 1."""
    namesrv_addr: str = ""
    """Name servers, as `host:port;host:port`; `-n` stands above it."""
    rocketmq_home: str = ""
    """Accepted for RocketMQ's scripts; without effect."""
    broker_permission: int = 6
    """6 reads and writes, 4 only reads, 2 only writes; name servers hear of a change at once."""
    broker_role: Literal["ASYNC_MASTER"] = "ASYNC_MASTER"
    """A lone master for now; copies to slaves are not built yet."""
    region_id: str = "DefaultRegion"
    """A name that is written into every message and shows in traces."""

    auto_create_topic_enable: bool = True
    """Make a topic when the first message for it comes."""
    auto_create_subscription_group: bool = True
    """Make a consumer group when its first member comes."""
    default_topic_queue_nums: int = 8
    """Queues of topics that are made on first use, at most; taken when TBW102 is made."""
    cluster_topic_enable: bool = True
    """Topics may be made after the topic that is named like the cluster."""
    broker_topic_enable: bool = True
    """Topics may be made after the topic that is named like the broker."""
    trace_topic_enable: bool = False
    """Have a topic for message trace, which `gantry why` reads."""
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"
    """The name of that topic."""

    enable_mixed_message_type: bool = False
    """Topics may be created with the attribute message.type=MIXED."""

    reject_transaction_message: bool = False
    """Refuse half messages."""
    transaction_time_out: int = 6_000
    """Milliseconds that a producer has to decide before it is asked; a change counts for half
    messages that come after it."""
    transaction_check_max: int = 15
    """How often a producer is asked before the message is given up."""
    transaction_check_interval: int = 60_000
    """Milliseconds between two questions; a change counts from the next question on."""

    timer_wheel_enable: bool = True
    """Deliver messages at times of their own, not at delay levels only."""
    timer_precision_ms: int = 1
    """Milliseconds that deliveries are rounded to; RocketMQ rounds to 1000."""
    timer_max_delay_sec: int = 10 * 366 * 86_400
    """Seconds that a message may wait at most; RocketMQ stops at three days."""
    recall_message_enable: bool = True
    """Messages that wait for their time can be called back."""

    enable_property_filter: bool = True
    """Consumers may filter by SQL conditions."""
    filter_support_retry: bool = False
    """Filter what is tried again by the properties of the first try."""
    enable_calc_filter_bit_map: bool = False
    """Evaluate SQL filters when messages are stored, so that pulls skip what nobody wants."""
    enable_consume_queue_ext: bool = False
    """Keep the results of enableCalcFilterBitMap beside the queues."""
    expect_consumer_num_use_filter: int = 32
    """Consumers with conditions that the bitmaps are laid out for."""
    max_error_rate_of_bloom_filter: int = 20
    """Percent of messages that the bitmaps may let through in vain."""
    filter_data_clean_time_span: int = 86_400_000
    """Milliseconds that the condition of a group without members is kept."""
    strict_subscriptions: bool = False
    """Refuse members of a group whose subscriptions differ, after a grace for deployments."""
    strict_subscriptions_grace_mills: int = 60_000
    """Milliseconds that two versions of a group may run side by side."""

    default_message_request_mode: Literal["PULL", "POP"] = "PULL"
    """How groups without a setting of their own read."""
    default_pop_share_queue_num: int = -1
    """Queues that members share in POP mode; -1 is all."""
    revive_queue_num: int = 8
    """Queues of the log of what is lent to poppers."""
    revive_interval: int = 1_000
    """Milliseconds between two looks at how far the log of what is lent to poppers is settled."""
    pop_polling_size: int = 1_024
    """Pops of one topic and group that may be held."""
    max_pop_polling_size: int = 100_000
    """Pops that may be held altogether."""
    pop_from_retry_probability: int = 20
    """Percent of pops that look at retries first."""
    enable_retry_topic_v2: bool = msgspec.field(name="enableRetryTopicV2", default=False)
    """Name retry topics of POP as RocketMQ 5 can."""
    retrieve_message_from_pop_retry_topic_v1: bool = msgspec.field(
        name="retrieveMessageFromPopRetryTopicV1", default=True
    )
    """With names of version 2: also read topics of version 1."""

    store_reply_message_enable: bool = True
    """Store replies to requests."""
    use_server_side_reset_offset: bool = True
    """Resets move progress in the broker; else members are told, as 4.9 does."""
    broker_fast_failure_enable: bool = True
    """Refuse sends that wait too long instead of letting them time out."""
    wait_time_mills_in_send_queue: int = 200
    """Milliseconds after which a waiting send is refused as busy."""
    os_page_cache_busy_time_out_mills: int = 1_000
    """A write this slow (milliseconds) counts as a busy disk."""

    register_name_server_period: int = 30_000
    """Milliseconds between two registrations, from 10,000 to 60,000."""
    register_broker_timeout_mills: int = 6_000
    """Milliseconds that a name server has to answer."""
    compressed_register: bool = False
    """Accepted; registrations are never compressed."""
    flush_consumer_offset_interval: int = 5_000
    """Milliseconds between two saves of progress."""
    flush_delay_offset_interval: int = 10_000
    """Milliseconds between two saves of how far delay levels are."""
    long_polling_enable: bool = True
    """Hold pulls that find nothing until a message comes."""
    short_polling_time_mills: int = 1_000
    """Milliseconds that a pull is held without long polling."""
    notify_consumer_ids_changed_enable: bool = True
    """Tell members at once when one comes or goes."""
    send_thread_pool_queue_capacity: int = 10_000
    """Sends that may wait for the disk at once; more are refused with SYSTEM_BUSY."""
    max_transfer_count_on_message_in_memory: int = 4_096
    """Most messages a pull; RocketMQ's 32 makes bulk readers 20 times slower."""
    max_transfer_bytes_on_message_in_memory: int = 4 * 1024 * 1024
    """Most bytes a pull."""
    default_query_max_num: int = 32
    """Most messages that a query by unique key answers."""
    max_msgs_num_batch: int = 64
    """Most messages that a query by key answers."""

    store_path_root_dir: str = f"{_HOME}/store"
    """Where everything is kept."""
    store_path_commit_log: str = ""
    """Where the commit log lies; empty is `commitlog` below storePathRootDir."""
    store_profile: Literal["rocketmq", "dev"] = "rocketmq"
    """dev: small files, and space judged by free bytes."""
    mapped_file_size_commit_log: int = 0
    """Bytes of a file of the commit log; 0 is the profile's size, here and in the next four."""
    mapped_file_size_consume_queue: int = 0
    """Bytes of a file of queue entries, 20 bytes each."""
    mapped_file_size_consume_queue_ext: int = 0
    """Bytes of a file of bitmaps."""
    max_hash_slot_num: int = 0
    """Slots of an index file."""
    max_index_num: int = 0
    """Entries of an index file."""
    message_index_enable: bool = True
    """Keep an index of keys, so that messages are found by them."""
    flush_disk_type: Literal["ASYNC_FLUSH", "SYNC_FLUSH"] = "ASYNC_FLUSH"
    """SYNC_FLUSH answers a send when it is on disk."""
    flush_interval_commit_log: int = 500
    """Asynchronous flush: milliseconds between two looks."""
    flush_commit_log_least_pages: int = 4
    """Asynchronous flush: fewer pages wait for the thorough flush."""
    flush_commit_log_thorough_interval: int = 10_000
    """Asynchronous flush: milliseconds that a power cut may lose at most."""
    sync_flush_timeout: int = 5_000
    """Milliseconds that a synchronous send waits for the disk."""
    file_reserved_time: int = 72
    """Hours that messages are kept."""
    delete_when: str = "04"
    """Hours of the day at which files past their time are deleted, as `04` or `02;04`."""
    delete_file_batch_max: int = 10
    """Most files that one look deletes."""
    disk_max_used_space_ratio: int = 75
    """A disk this full (percent) has files past their time deleted at any hour."""
    disk_space_clean_forcibly_ratio: int = 85
    """A disk this full loses its oldest files even before their time."""
    disk_space_warning_level_ratio: int = 90
    """A disk fuller than this takes no more messages."""
    clean_resource_interval: int = 10_000
    """Milliseconds between two looks for files to delete."""
    max_message_size: int = 4 * 1024 * 1024
    """Most bytes of a body."""
    check_crc_on_recover: bool = msgspec.field(name="checkCRCOnRecover", default=True)
    """Check every message that is scanned after a crash."""
    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    """The delays of the levels, in s, m, h or d."""
    broker_config_path: str = ""
    """The file that changes of a running broker are written to: that of `-c`; when empty,
    `config/broker.properties` below storePathRootDir."""
    log_directory: str = f"{_HOME}/logs/rocketmqlogs"
    """Where broker.log goes; empty writes none."""

    def __post_init__(self) -> None:
        check_limits(self)
        check_hours("deleteWhen", self.delete_when)
        if self.broker_id != 0:
            raise ConfigError(f"brokerId={self.broker_id}: {_NO_SLAVES}")
        parse_delay_levels(self.message_delay_level)
        for address in self.name_servers:
            check_address("namesrvAddr", address)

    @property
    def delay_levels_ms(self) -> tuple[int, ...]:
        return parse_delay_levels(self.message_delay_level)

    @property
    def name_servers(self) -> list[str]:
        return [part.strip() for part in self.namesrv_addr.split(";") if part.strip()]

    @property
    def store(self) -> StoreConfig:
        """The same settings as the store knows them."""
        root = self.store_path_root_dir
        profile = (
            StoreConfig.dev(root) if self.store_profile == "dev" else StoreConfig.rocketmq(root)
        )
        queue_entries = self.mapped_file_size_consume_queue // QUEUE_ENTRY_BYTES
        return msgspec.structs.replace(
            profile,
            log_directory=self.store_path_commit_log,
            segment_bytes=self.mapped_file_size_commit_log or profile.segment_bytes,
            queue_file_entries=queue_entries or profile.queue_file_entries,
            ext_file_bytes=self.mapped_file_size_consume_queue_ext or profile.ext_file_bytes,
            index_slots=self.max_hash_slot_num or profile.index_slots,
            index_entries=self.max_index_num or profile.index_entries,
            index_enabled=self.message_index_enable,
            flush=self.flush_disk_type,
            flush_interval_ms=self.flush_interval_commit_log,
            flush_least_pages=self.flush_commit_log_least_pages,
            flush_thorough_ms=self.flush_commit_log_thorough_interval,
            sync_flush_timeout_ms=self.sync_flush_timeout,
            queue_wait_max_ms=(
                self.wait_time_mills_in_send_queue if self.broker_fast_failure_enable else 0
            ),
            append_busy_ms=self.os_page_cache_busy_time_out_mills,
            retention_hours=self.file_reserved_time,
            delete_when=self.delete_when,
            delete_batch_max=self.delete_file_batch_max,
            disk_clean_ratio=self.disk_max_used_space_ratio / 100,
            disk_force_ratio=self.disk_space_clean_forcibly_ratio / 100,
            disk_refuse_ratio=self.disk_space_warning_level_ratio / 100,
            clean_interval_ms=self.clean_resource_interval,
            max_message_bytes=self.max_message_size,
            check_crc_on_recover=self.check_crc_on_recover,
            delay_levels_ms=self.delay_levels_ms,
        )


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """`1s 5s 1m` in milliseconds; level 1 is the first."""
    levels = []
    for word in text.split():
        match = re.fullmatch(r"(\d+)([smhd])", word)
        if match is None:
            raise ConfigError(
                f"messageDelayLevel: {word!r} is not a number followed by s, m, h or d"
            )
        levels.append(int(match[1]) * _UNITS_MS[match[2]])
    if not levels:
        raise ConfigError("messageDelayLevel names no level")
    return tuple(levels)


def broker_config(written: WrittenSettings) -> BrokerConfig:
    """The settings that stand in a property file and on the command line."""
    renamed = WrittenSettings(
        {_OLD_NAMES.get(key, key): value for key, value in written.values.items()},
        {_OLD_NAMES.get(key, key): place for key, place in written.places.items()},
    )
    for key, (is_refused, advice) in _NOT_BUILT.items():
        if is_refused(renamed.values.get(key, _HARMLESS.get(key, "")).strip().lower()):
            raise ConfigError(f"{renamed.quote(key)}: {advice}")
    return settings(
        BrokerConfig, renamed.values, ignored=IGNORED_KEYS | _NOT_BUILT.keys(),
        places=renamed.places,
    )  # fmt: skip


def local_address() -> str:
    """An address of this machine that others may reach; loopback when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a documentation address: nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
