"""A name server's settings, under RocketMQ's names."""

import os.path

import msgspec

from gantrymq.base.config import WrittenSettings, settings
from gantrymq.base.errors import ConfigError

_HOME = os.path.expanduser("~")


class NameServerConfig(msgspec.Struct, kw_only=True, rename="camel"):
    """What a name server is told; only its handler of changed settings writes to it."""

    listen_port: int = 9876
    """The port; 0 picks a free one."""
    bind_address: str = "0.0.0.0"
    """The address that the port is opened on; 0.0.0.0 is every one."""
    kv_config_path: str = f"{_HOME}/namesrv/kvConfig.json"
    """Where the key-value configuration is kept."""
    config_store_path: str = f"{_HOME}/namesrv/namesrv.properties"
    """The file that changes of a running name server are written to; with `-c` it is that one."""
    rocketmq_home: str = ""
    """Accepted for RocketMQ's scripts; without effect."""
    order_message_enable: bool = False
    """Answer routes of ordered topics with their fixed queue list from the KV config."""
    enable_all_topic_list: bool = True
    """Answer with the list of all topics."""
    broker_silent_ms_max: int = 120_000
    """A broker silent for longer is dropped."""
    scan_not_active_broker_interval: int = 10_000
    """Milliseconds between two looks for silent brokers."""
    log_directory: str = f"{_HOME}/logs/rocketmqlogs"
    """Where namesrv.log goes; empty writes none."""

    def __post_init__(self) -> None:
        if not 0 <= self.listen_port <= 65_535:
            raise ConfigError(f"listenPort={self.listen_port}: write a number from 0 to 65535")
        if self.scan_not_active_broker_interval < 1:
            raise ConfigError("scanNotActiveBrokerInterval: write a number of at least 1")


IGNORED_KEYS = frozenset(
    {
        "serverWorkerThreads", "serverCallbackExecutorThreads", "serverSelectorThreads",
        "serverOnewaySemaphoreValue", "serverAsyncSemaphoreValue",
        "serverChannelMaxIdleTimeSeconds", "serverSocketSndBufSize", "serverSocketRcvBufSize",
        "serverPooledByteBufAllocatorEnable", "useEpollNativeSelector", "productEnvName",
        "clusterTest", "enableTopicList", "notifyMinBrokerIdChanged", "supportActingMaster",
        "needWaitForService", "waitSecondsForService",
        "deleteTopicWithBrokerRegistration", "clientRequestThreadPoolNums",
        "defaultThreadPoolNums", "configBlackList", "writeBufferHighWaterMark",
        "writeBufferLowWaterMark", "serverSocketBacklog", "returnOrderTopicConfigToBroker",
        "unRegisterBrokerQueueCapacity", "clientRequestThreadPoolQueueCapacity",
        "defaultThreadPoolQueueCapacity",
    }
)  # fmt: skip
"""Keys of RocketMQ's name server that have no meaning here."""

UNCHANGEABLE = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})
"""Never changed by a call."""
NEXT_START = frozenset({"listenPort", "bindAddress", "logDirectory"})
"""Changed by a call, in force from the next start."""

_NO_CONTROLLER = (
    "controllers are not built; remove every line with `controller` in it and run masters"
)


def nameserver_config(written: WrittenSettings) -> NameServerConfig:
    """The settings that stand in a property file and on the command line."""
    for key, value in written.values.items():
        embedded = key == "enableControllerInNamesrv" and value.strip().lower() == "true"
        if embedded or key.startswith("controller"):
            raise ConfigError(f"{written.quote(key)}: {_NO_CONTROLLER}")
    return settings(
        NameServerConfig, written.values, places=written.places,
        ignored=IGNORED_KEYS | {"enableControllerInNamesrv"},
    )  # fmt: skip
