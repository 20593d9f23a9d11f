"""A broker's settings, under RocketMQ's names and with RocketMQ's defaults."""

import os.path
import re
from collections.abc import Callable
from typing import ClassVar, Literal

import msgspec

from gantrymq.base.config import WrittenSettings, settings
from gantrymq.base.errors import ConfigError
from gantrymq.base.telemetry_settings import check_telemetry
from gantrymq.broker.settings.limits import check_access, check_address, check_hours, check_limits
from gantrymq.broker.settings.rocketmq_keys import IGNORED_KEYS
from gantrymq.remoting.limits import BrokerLimits, check_positive
from gantrymq.replication.group.identity import GroupIdentity, group_identity
from gantrymq.store.config import StoreConfig

_HOME = os.path.expanduser("~")
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
OLD_NAMES = {
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
    "haSlaveFallbehindMax": "haMaxGapNotInSync",
}
"""How older releases call some settings."""
QUEUE_ENTRY_BYTES = 20
_NO_CONTROLLER = "brokers that a controller elects are not built; remove the line, run a master"
_NO_CONTAINER = "one process runs one broker: start mqbroker -c for each of these files"
_NO_LIGHT_QUEUES = "light queues (LMQ) are not built; remove the line"
_NOT_BUILT: dict[str, tuple[Callable[[str], bool], str]] = {
    "enableControllerMode": (lambda value: value == "true", _NO_CONTROLLER),
    "brokerConfigPaths": (bool, _NO_CONTAINER),
    "useTLS": (
        lambda value: value == "true",
        "write tls.enable=true: connections that the broker opens are TLS then",
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
_HARMLESS = {"storeType": "default"}
"""What those mean that are not written down."""
OTHER_PORTS = (-2, 1)
"""How far the fast and the HA port are from the port of a broker that names only that."""


class BrokerConfig(BrokerLimits, kw_only=True, rename="camel"):
    """All settings of a broker. Its parts share one value, and read a setting when they need it.

    Only `BrokerSettings` changes it while the broker runs, and only the keys of its list `LIVE`.
    The keys are flat because RocketMQ's are; limits stand in the base class. The headings are those
    of `docs/broker-settings.md`, which `gantrymq.cli.pages.settings` prints from these sentences.
    """

    SECRET_FIELDS: ClassVar[tuple[str, ...]] = (
        *BrokerLimits.SECRET_FIELDS,
        "init_authentication_user",
        "inner_client_authentication_credentials",
    )

    # --- Identity ---

    broker_name: str = "broker-a"
    """The name of the broker; every broker of a cluster has its own."""
    broker_cluster_name: str = "DefaultCluster"
    """The name of the cluster that the broker belongs to."""
    broker_id: int = 0
    """The id of the broker below its name: 0 is the master, slaves count from 1."""
    broker_role: Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"] = "ASYNC_MASTER"
    """The role of the broker: a master whose sends do not wait for slaves, one whose sends wait
    for a slave, or a slave."""
    region_id: str = "DefaultRegion"
    """The region that the broker writes into answers to sends; clients write it into traces."""
    broker_permission: int = 6
    """What clients may do: 6 read and write, 4 read, 2 write; the broker registers a change with
    the name servers at once."""
    rocketmq_home: str = ""
    """The folder below which `conf/plain_acl.yml` lies; empty stands for $ROCKETMQ_HOME."""
    broker_config_path: str = ""
    """The file that the running broker writes changes to: that of `-c`; empty stands for
    `config/broker.properties` below storePathRootDir."""
    log_directory: str = f"{_HOME}/logs/rocketmqlogs"
    """The folder of `broker.log`; with an empty value the broker logs to standard error."""

    # --- Network ---

    broker_ip1: str = msgspec.field(name="brokerIP1", default="")
    """The address that name servers give to clients; empty stands for an address of the machine."""
    broker_ip2: str = msgspec.field(name="brokerIP2", default="")
    """The address of the HA port that name servers give to slaves; empty stands for brokerIP1."""
    bind_address: str = "0.0.0.0"
    """The local address on which the broker opens its ports; 0.0.0.0 stands for all."""
    listen_port: int = 10911
    """The port for clients; 0 takes a free one."""
    fast_listen_port: int = -1
    """The second port (VIP channel), which serves all requests but pulls; -1 stands for
    listenPort - 2."""
    ha_listen_port: int = -1
    """The port of a master for its slaves (HA); -1 stands for listenPort + 1."""

    # --- Access control ---

    acl_enable: bool = False
    """The broker serves only requests whose key and rights are in its access files."""
    acl_file: str = ""
    """The main access file; empty stands for `conf/plain_acl.yml` below rocketmqHome. More files
    may lie in a folder `acl` beside it."""
    authentication_enabled: bool = False
    """The broker serves only requests that a user of its own has signed (users of RocketMQ 5.3);
    not together with aclEnable."""
    authorization_enabled: bool = False
    """The policies of users decide what they may do; without it every user may do everything."""
    init_authentication_user: str = ""
    """A super user that the broker makes at its start if it has none of that name, as
    `{"username":"...","password":"..."}`."""
    authentication_whitelist: str = ""
    """Numbers of request codes that need no signature, with commas between."""
    authorization_whitelist: str = ""
    """Numbers of request codes about which no policy is asked, with commas between."""
    inner_client_authentication_credentials: str = ""
    """The key pair of the broker's own requests to name servers and its master, as
    `{"accessKey":"...","secretKey":"..."}`; with authenticationEnabled a super user, too."""

    # --- Registration with name servers ---

    namesrv_addr: str = ""
    """The name servers, as `host:port;host:port`; the option `-n` overrides it."""
    register_name_server_period: int = 30_000
    """Milliseconds between two registrations; values are brought into 10,000 to 60,000."""
    register_broker_timeout_mills: int = 6_000
    """Milliseconds that the broker waits for a name server's answer to a registration."""
    compressed_register: bool = False
    """The broker accepts this key; it never compresses registrations."""

    # --- Topics and groups ---

    auto_create_topic_enable: bool = True
    """The broker creates an unknown topic at the first message for it, after topic TBW102."""
    default_topic_queue_nums: int = 8
    """The number of queues of TBW102, hence the most of a topic that is created after it; it
    counts when TBW102 is created."""
    cluster_topic_enable: bool = True
    """Clients may read and write the topic that has the name of the cluster."""
    broker_topic_enable: bool = True
    """Clients may read and write the topic that has the name of the broker."""
    auto_create_subscription_group: bool = True
    """The broker creates an unknown consumer group when its first member comes."""
    trace_topic_enable: bool = False
    """The broker creates the topic of message traces, which `gantry why` reads."""
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"
    """The name of the topic of message traces."""
    enable_mixed_message_type: bool = False
    """Operators may create topics with the attribute message.type=MIXED."""

    # --- Sending ---

    max_message_size: int = 4 * 1024 * 1024
    """The most bytes of a message's body; larger ones are refused with MESSAGE_ILLEGAL."""
    send_thread_pool_queue_capacity: int = 10_000
    """The most sends that wait for the disk, where each 16 KiB of a body count as one more. From
    half of it on connections are held back, and beyond it sends are refused with SYSTEM_BUSY."""
    broker_fast_failure_enable: bool = True
    """The broker refuses sends that wait longer than waitTimeMillsInSendQueue."""
    wait_time_mills_in_send_queue: int = 200
    """Milliseconds that a send may wait for the next file of the commit log before the broker
    refuses it with SYSTEM_BUSY, and for which connections are held back while the disk does
    nothing; 0 sets no limit."""
    os_page_cache_busy_time_out_mills: int = 1_000
    """Milliseconds of one write after which the disk counts as busy: the broker refuses the sends
    that waited behind that write with SYSTEM_BUSY."""
    store_reply_message_enable: bool = True
    """The broker stores replies (request-reply) in the reply topic besides pushing them."""

    # --- Reading and offsets ---

    long_polling_enable: bool = True
    """The broker holds a pull that finds no message for as long as the client asks (long
    polling)."""
    short_polling_time_mills: int = 1_000
    """Milliseconds that the broker holds such a pull when longPollingEnable is false."""
    max_transfer_count_on_message_in_memory: int = 4_096
    """The most messages in the answer to a pull; with RocketMQ's 32 a bulk reader is 20 times
    slower."""
    max_transfer_bytes_on_message_in_memory: int = 4 * 1024 * 1024
    """The most bytes in the answer to a pull; one message is always sent."""
    default_query_max_num: int = 32
    """The most messages in the answer to a query by unique key."""
    max_msgs_num_batch: int = 64
    """The most messages in the answer to any query by key."""
    notify_consumer_ids_changed_enable: bool = True
    """The broker tells the members of a group at once when one comes or goes, so that they
    rebalance."""
    flush_consumer_offset_interval: int = 5_000
    """Milliseconds between two saves of the groups' offsets to `consumerOffset.json`."""
    use_server_side_reset_offset: bool = True
    """A reset moves the group's offsets in the broker; with false the broker asks the members to
    move them, as RocketMQ 4.9 does."""

    # --- Filters and subscriptions ---

    enable_property_filter: bool = True
    """Consumers may subscribe with SQL92 conditions."""
    filter_support_retry: bool = False
    """The broker filters messages of a retry topic by the subscription of their original topic."""
    enable_calc_filter_bit_map: bool = False
    """The broker evaluates SQL92 conditions when it stores a message, so that pulls skip messages
    that no group wants; it needs enableConsumeQueueExt."""
    enable_consume_queue_ext: bool = False
    """The broker stores those results (bitmaps) in `consumequeue_ext`."""
    expect_consumer_num_use_filter: int = 32
    """The number of groups with SQL92 conditions for which the bitmaps are sized."""
    max_error_rate_of_bloom_filter: int = 20
    """The percentage of messages that a bitmap may pass although the condition does not hold; the
    pull then filters them."""
    filter_data_clean_time_span: int = 86_400_000
    """Milliseconds for which the broker keeps the condition of a group without members."""
    strict_subscriptions: bool = False
    """The broker refuses a member whose subscription conflicts with that of its group, once
    strictSubscriptionsGraceMills are over."""
    strict_subscriptions_grace_mills: int = 60_000
    """Milliseconds for which two subscriptions of a group may exist side by side during a
    deployment."""

    # --- POP ---

    default_message_request_mode: Literal["PULL", "POP"] = "PULL"
    """How groups read for which no operator has set a mode: PULL or POP."""
    default_pop_share_queue_num: int = -1
    """The number of next members whose queues a member of such a group pops from besides its own;
    -1 stands for all members."""
    pop_polling_size: int = 1_024
    """The most pops that the broker holds for one queue and group (long polling)."""
    max_pop_polling_size: int = 100_000
    """The most pops that the broker holds in total."""
    pop_from_retry_probability: int = 20
    """The percentage of pops that read the retry topic first."""
    revive_queue_num: int = 8
    """The number of queues of the revive topic, which stores checkpoints and acks of pops."""
    revive_interval: int = 1_000
    """Milliseconds between two scans that move the offsets of the revive topic forward."""
    enable_retry_topic_v2: bool = msgspec.field(name="enableRetryTopicV2", default=False)
    """The broker names the retry topics of POP in RocketMQ 5's second form
    (`%RETRY%group+topic`)."""
    retrieve_message_from_pop_retry_topic_v1: bool = msgspec.field(
        name="retrieveMessageFromPopRetryTopicV1", default=True
    )
    """With enableRetryTopicV2 pops also read the retry topics of the first form
    (`%RETRY%group_topic`)."""

    # --- Delay levels and timers ---

    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    """The delay of each level, in s, m, h or d; level 1 is the first."""
    flush_delay_offset_interval: int = 10_000
    """Milliseconds between two saves of the offsets of the delay levels."""
    timer_wheel_enable: bool = True
    """The broker delivers timer messages, which have a delivery time of their own."""
    timer_precision_ms: int = 1
    """Milliseconds to which delivery times of timer messages are rounded."""
    timer_max_delay_sec: int = 10 * 366 * 86_400
    """The most seconds that a timer message may wait; longer delays are refused."""
    recall_message_enable: bool = True
    """Producers may recall a timer message before its delivery."""

    # --- Transactions ---

    reject_transaction_message: bool = False
    """The broker refuses half messages."""
    transaction_time_out: int = 6_000
    """Milliseconds from a half message to its first check-back; a change counts for half messages
    that come after it."""
    transaction_check_interval: int = 60_000
    """Milliseconds between two check-backs of a half message; a change counts from the next
    check-back on."""
    transaction_check_max: int = 15
    """The most check-backs of a half message; after them the broker moves it to the topic
    TRANS_CHECK_MAX_TIME_TOPIC."""

    # --- Files of the store ---

    store_path_root_dir: str = f"{_HOME}/store"
    """The folder of the store."""
    store_path_commit_log: str = ""
    """The folder of the commit log; empty stands for `commitlog` below storePathRootDir."""
    store_profile: Literal["rocketmq", "dev"] = "rocketmq"
    """The default sizes: `rocketmq` has RocketMQ's; `dev` has small files, and ignores the ratios
    of disk space below."""
    mapped_file_size_commit_log: int = 0
    """Bytes of a file of the commit log; 0 stands for the profile's size, 1 GiB or 64 MiB."""
    mapped_file_size_consume_queue: int = 0
    """Bytes of a file of a consume queue, 20 a message; 0 stands for 6,000,000."""
    mapped_file_size_consume_queue_ext: int = 0
    """Bytes of a file of `consumequeue_ext`; 0 stands for the profile's size, 48 MiB or 1 MiB."""
    message_index_enable: bool = True
    """The broker keeps an index of keys, by which queries find messages."""
    max_hash_slot_num: int = 0
    """The number of hash slots of an index file; 0 stands for the profile's number, 5,000,000 or
    50,000."""
    max_index_num: int = 0
    """The number of entries of an index file; 0 stands for the profile's number, 20,000,000 or
    200,000."""
    check_crc_on_recover: bool = msgspec.field(name="checkCRCOnRecover", default=True)
    """Recovery after a crash checks the CRC of every body that it scans."""

    # --- Flush ---

    flush_disk_type: Literal["ASYNC_FLUSH", "SYNC_FLUSH"] = "ASYNC_FLUSH"
    """SYNC_FLUSH answers a send after its flush, ASYNC_FLUSH before it."""
    sync_flush_timeout: int = 5_000
    """Milliseconds that a send waits for its flush with SYNC_FLUSH, before FLUSH_DISK_TIMEOUT is
    the answer."""
    flush_interval_commit_log: int = 500
    """Milliseconds between two flushes of the commit log with ASYNC_FLUSH."""
    flush_commit_log_least_pages: int = 4
    """The least pages of 4 KiB that such a flush writes; with fewer it does nothing."""
    flush_commit_log_thorough_interval: int = 10_000
    """Milliseconds after which a flush writes any number of pages: the most that a power cut
    loses with ASYNC_FLUSH."""

    # --- Copies on slaves ---

    slave_timeout: int = 3_000
    """Milliseconds that a send waits for a slave with SYNC_MASTER, before FLUSH_SLAVE_TIMEOUT is
    the answer."""
    ha_max_gap_not_in_sync: int = 256 * 1024 * 1024
    """Bytes that a slave may be behind and still be waited for; behind that, or without a slave,
    SLAVE_NOT_AVAILABLE is the answer."""
    ha_master_address: str = ""
    """Of a slave: the address of its master's HA port; empty stands for what name servers say."""
    ha_copy_whole_log: bool = False
    """Of a slave without a log: copy all that the master has, instead of its last file."""
    slave_read_enable: bool = False
    """Consumers that are far behind are told to read from a slave."""
    access_message_in_memory_max_ratio: int = 40
    """The percentage of this machine's memory that a consumer is behind when it is far behind."""

    # --- Raft group ---

    enable_d_leger_commit_log: bool = False
    """The broker is a member of a raft group, which elects its master by itself: role and brokerId
    follow from that."""
    d_leger_group: str = ""
    """The name of the raft group; the same on all members, as brokerName is."""
    d_leger_peers: str = ""
    """The members with the ports of their raft links, as `n0-host:port;n1-host:port;n2-host:port`;
    the same on all members."""
    d_leger_self_id: str = ""
    """Which of them this broker is: n0, n1, ..."""
    raft_election_timeout: int = 600
    """Milliseconds without a word of the leader after which a member wants an election; each waits
    one to two times as long."""
    raft_append_bytes_max: int = 1024 * 1024
    """The most bytes of the log that a leader sends to a follower at once; at least one record."""

    # --- Retention ---

    file_reserved_time: int = 72
    """Hours for which the broker keeps a file of the commit log after its last write."""
    delete_when: str = "04"
    """The hours of the day at which it deletes files that are older, as `04` or `02;04`."""
    delete_file_batch_max: int = 10
    """The most files that one round deletes."""
    clean_resource_interval: int = 10_000
    """Milliseconds between two rounds."""
    disk_max_used_space_ratio: int = 75
    """The percentage of used disk space from which older files are deleted at any hour."""
    disk_space_clean_forcibly_ratio: int = 85
    """The percentage of used disk space from which the oldest files are deleted at any age."""
    disk_space_warning_level_ratio: int = 90
    """The percentage of used disk space above which the broker refuses sends with
    SERVICE_NOT_AVAILABLE."""

    def __post_init__(self) -> None:
        check_limits(self)
        check_positive(self)
        check_telemetry(self)
        check_hours("deleteWhen", self.delete_when)
        if self.enable_d_leger_commit_log:
            self.group_identity  # noqa: B018 (raises if the members are not well written)
        if self.is_slave and self.broker_id < 1:
            raise ConfigError("brokerRole=SLAVE: give it a brokerId of 1 or more; 0 is the master")
        if not self.is_slave and self.broker_id != 0:
            raise ConfigError(
                f"brokerId={self.broker_id}: a master has 0; for a slave write brokerRole=SLAVE"
            )
        if self.ha_master_address:
            check_address("haMasterAddress", self.ha_master_address)
        check_access(self.acl_enable, self.authentication_enabled, self.authorization_enabled)
        parse_delay_levels(self.message_delay_level)
        for address in self.name_servers:
            check_address("namesrvAddr", address, 9876)

    @property
    def is_slave(self) -> bool:
        return self.broker_role == "SLAVE"

    @property
    def group_identity(self) -> GroupIdentity:
        """The raft group of a broker that is a member of one."""
        return group_identity(self.d_leger_group, self.d_leger_peers, self.d_leger_self_id)

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
            is_copy=self.is_slave and not self.enable_d_leger_commit_log,
            in_group=self.enable_d_leger_commit_log,
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
        {OLD_NAMES.get(key, key): value for key, value in written.values.items()},
        {OLD_NAMES.get(key, key): place for key, place in written.places.items()},
    )
    for key, (is_refused, advice) in _NOT_BUILT.items():
        if is_refused(renamed.values.get(key, _HARMLESS.get(key, "")).strip().lower()):
            raise ConfigError(f"{renamed.quote(key)}: {advice}")
    return settings(
        BrokerConfig,
        renamed.values,
        ignored=IGNORED_KEYS | _NOT_BUILT.keys(),
        places=renamed.places,
    )
