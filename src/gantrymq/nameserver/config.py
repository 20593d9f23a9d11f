"""A name server's settings, under RocketMQ's names."""

import os.path

import msgspec

_HOME = os.path.expanduser("~")


class NameServerConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    listen_port: int = 9876
    bind_address: str = "0.0.0.0"
    kv_config_path: str = f"{_HOME}/namesrv/kvConfig.json"
    config_store_path: str = f"{_HOME}/namesrv/namesrv.properties"
    rocketmq_home: str = ""
    order_message_enable: bool = False
    """Answer routes of ordered topics with their fixed queue list from the KV config."""
    enable_all_topic_list: bool = True
    broker_silent_ms_max: int = 120_000
    """A broker silent for longer is dropped."""
    scan_not_active_broker_interval: int = 10_000
    log_directory: str = f"{_HOME}/logs/rocketmqlogs"
    """Where namesrv.log goes; empty writes none."""


IGNORED_KEYS = frozenset(
    {
        "serverWorkerThreads", "serverCallbackExecutorThreads", "serverSelectorThreads",
        "serverOnewaySemaphoreValue", "serverAsyncSemaphoreValue",
        "serverChannelMaxIdleTimeSeconds", "serverSocketSndBufSize", "serverSocketRcvBufSize",
        "serverPooledByteBufAllocatorEnable", "useEpollNativeSelector", "productEnvName",
        "clusterTest", "enableTopicList", "notifyMinBrokerIdChanged", "supportActingMaster",
        "enableControllerInNamesrv", "needWaitForService", "waitSecondsForService",
        "deleteTopicWithBrokerRegistration", "clientRequestThreadPoolNums",
        "defaultThreadPoolNums", "configBlackList", "writeBufferHighWaterMark",
        "writeBufferLowWaterMark", "serverSocketBacklog", "returnOrderTopicConfigToBroker",
        "unRegisterBrokerQueueCapacity", "clientRequestThreadPoolQueueCapacity",
        "defaultThreadPoolQueueCapacity",
    }
)  # fmt: skip
"""Keys of RocketMQ's name server that have no meaning here."""
