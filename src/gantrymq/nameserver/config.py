"""A name server's settings, under RocketMQ's names."""

import os.path

from gantrymq.base.config import WrittenSettings, settings
from gantrymq.base.errors import ConfigError
from gantrymq.base.telemetry_settings import METRICS_KEYS, OURS_OF_LOGS, check_telemetry
from gantrymq.remoting.limits import OURS_OF_NAME_SERVERS, NameServerLimits, check_positive

_HOME = os.path.expanduser("~")


class NameServerConfig(NameServerLimits, kw_only=True, rename="camel"):
    """All settings of a name server. Only the handler of setting changes writes to it."""

    listen_port: int = 9876
    """The port for clients and brokers; 0 takes a free one."""
    bind_address: str = "0.0.0.0"
    """The local address on which the name server opens its port; 0.0.0.0 stands for all."""
    kv_config_path: str = f"{_HOME}/namesrv/kvConfig.json"
    """The file of the KV config, which holds the fixed queue lists of ordered topics."""
    config_store_path: str = f"{_HOME}/namesrv/namesrv.properties"
    """The file that the running name server writes changes to; with `-c` it is that one."""
    rocketmq_home: str = ""
    """The folder below which `conf/plain_acl.yml` lies; empty stands for $ROCKETMQ_HOME."""
    acl_enable: bool = False
    """The name server serves only requests whose key and rights are in its access files; brokers
    then need the key of an admin, or an address on the white list."""
    acl_file: str = ""
    """The main access file; empty stands for `conf/plain_acl.yml` below rocketmqHome."""
    order_message_enable: bool = False
    """The name server adds the fixed queue list of the KV config to the route of a topic."""
    enable_all_topic_list: bool = True
    """The name server answers the request for the list of all topics."""
    broker_silent_ms_max: int = 120_000
    """Milliseconds without a registration after which the name server drops a broker."""
    scan_not_active_broker_interval: int = 10_000
    """Milliseconds between two scans for such brokers."""
    log_directory: str = f"{_HOME}/logs/rocketmqlogs"
    """The folder of `namesrv.log`; with an empty value the name server logs to standard error."""

    def __post_init__(self) -> None:
        if not 0 <= self.listen_port <= 65_535:
            raise ConfigError(f"listenPort={self.listen_port}: write a number from 0 to 65535")
        if self.scan_not_active_broker_interval < 1:
            raise ConfigError("scanNotActiveBrokerInterval: write a number of at least 1")
        check_positive(self)
        check_telemetry(self)


IGNORED_KEYS = frozenset(
    {
        "serverWorkerThreads", "serverCallbackExecutorThreads", "serverSelectorThreads",
        "serverOnewaySemaphoreValue", "serverAsyncSemaphoreValue",
        "serverChannelMaxIdleTimeSeconds", "serverSocketSndBufSize",
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

UNCHANGEABLE = frozenset(
    {"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome", "aclEnable", "aclFile"}
)
"""Never changed by a call."""
NEXT_START = frozenset({"listenPort", "bindAddress", "logDirectory", "logFormat", *METRICS_KEYS})
"""Changed by a call, in force from the next start."""

OURS = OURS_OF_NAME_SERVERS | {
    "aclEnable": "none; it serves everybody",
    "aclFile": "none",
    "brokerSilentMsMax": "always 120000, or what the broker registers",
    "logDirectory": "the log directory stands in `rmq.namesrv.logback.xml`",
    **dict.fromkeys(METRICS_KEYS, "none; its name server has no metrics"),
    **OURS_OF_LOGS,
}
"""Keys that RocketMQ's name server does not have, and what it has instead."""
OTHER_DEFAULTS = {"scanNotActiveBrokerInterval": "5000", "serverSocketRcvBufSize": "0"}
"""Defaults of RocketMQ 5's name server that differ from ours."""

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
        NameServerConfig,
        written.values,
        places=written.places,
        ignored=IGNORED_KEYS | {"enableControllerInNamesrv"},
    )
