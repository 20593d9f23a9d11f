"""Every limit of a server that has a name: its default, what it guards, how it refuses.

The classes below are the settings themselves; `LIMITS` says with which code each one refuses. The
pages `docs/broker-settings.md` and `docs/security.md` are printed from both. What is refused is
counted in `Refusals` under the name of the setting, and the remark of the answer names it, too.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.telemetry_settings import TelemetrySettings
from gantrymq.protocol.codes import ResponseCode as Code

log = logging.getLogger(__name__)

LOG_SECONDS: Final = 60.0
"""One line for each limit in so many seconds, with the number of refusals since the last one."""


class ConnectionLimits(TelemetrySettings, kw_only=True, rename="camel"):
    """What connections and requests of any server may take; brokers and name servers have it."""

    # --- Limits ---

    max_connections: int = 50_000
    """The most connections of all ports together; never more than three quarters of the files that
    the process may open."""
    max_connections_per_address: int = 10_000
    """The most connections from one IP address."""
    max_frame_bytes: int = 16 * 1024 * 1024
    """The most bytes of a request, header and body together."""
    max_header_bytes: int = 512 * 1024
    """The most bytes of a request's header, which carries the properties of a message."""
    max_requests: int = 500_000
    """The most requests of all connections that wait for their answer, long polls among them."""
    max_requests_per_connection: int = 20_000
    """The most requests of one connection that wait for their answer."""
    server_socket_rcv_buf_size: int = 64 * 1024
    """Bytes of a connection that have arrived and wait to be read: what a busy server leaves there
    is late when its turn comes. More of it is faster where peers are far away. 0 leaves it to the
    system, which keeps megabytes."""
    max_slow_requests_per_connection: int = 256
    """The most requests of one connection that are worked at beside the hot ones: those of
    operators' tools."""
    frame_timeout_mills: int = 60_000
    """Milliseconds from the first byte of a request to its last one."""
    reader_timeout_mills: int = 60_000
    """Milliseconds for which a peer may leave 4 MiB of answers untaken."""
    max_slow_readers: int = 128
    """The most peers that leave 4 MiB of answers untaken at the same time: the server keeps those
    bytes, up to twice as many if one answer is large. One more, and the slowest one is closed."""
    authentication_timeout_mills: int = 10_000
    """Milliseconds to the first request with sufficient rights, when access control is on."""


class BrokerLimits(ConnectionLimits, kw_only=True, rename="camel"):
    """What a broker limits besides."""

    # --- Limits ---

    max_topics: int = 100_000
    """The most topics, the broker's own and those of retries and dead letters among them."""
    max_groups: int = 100_000
    """The most consumer groups."""
    max_queues_per_topic: int = 65_536
    """The most queues of a topic."""
    max_pull_polling_size: int = 100_000
    """The most pulls that the broker holds in total (long polling)."""
    max_polling_size_per_connection: int = 10_000
    """The most pulls and pops that the broker holds for one connection."""
    user_property_max_num: int = 1_024
    """The most properties of a message; their bytes are limited to 32,767 by the format."""
    max_messages_per_batch: int = 32_768
    """The most messages of a batch."""
    max_subscription_tags: int = 2_000
    """The most tags of a subscription."""
    max_heartbeat_bytes: int = 1024 * 1024
    """The most bytes of a heartbeat, whose groups and subscriptions the broker keeps."""


class NameServerLimits(ConnectionLimits, kw_only=True, rename="camel"):
    """What a name server limits besides."""

    # --- Limits ---

    max_brokers: int = 10_000
    """The most brokers, slaves among them, that are registered."""
    max_registration_bytes: int = 16 * 1024 * 1024
    """The most bytes of a packed registration once it is unpacked."""
    max_kv_bytes: int = 4 * 1024 * 1024
    """The most characters in the KV config, which is written whole at each change."""


LIMITS: Final[Mapping[str, Code | None]] = {
    "maxConnections": Code.SYSTEM_BUSY,
    "maxConnectionsPerAddress": Code.SYSTEM_BUSY,
    "maxFrameBytes": Code.MESSAGE_ILLEGAL,
    "maxHeaderBytes": Code.MESSAGE_ILLEGAL,
    "maxRequests": Code.SYSTEM_BUSY,
    "maxRequestsPerConnection": Code.SYSTEM_BUSY,
    "maxSlowRequestsPerConnection": Code.SYSTEM_BUSY,
    "frameTimeoutMills": None,
    "readerTimeoutMills": None,
    "maxSlowReaders": None,
    "authenticationTimeoutMills": None,
    "maxTopics": Code.NO_PERMISSION,
    "maxGroups": Code.NO_PERMISSION,
    "maxQueuesPerTopic": Code.SYSTEM_ERROR,
    "maxPullPollingSize": Code.SYSTEM_BUSY,
    "maxPollingSizePerConnection": Code.SYSTEM_BUSY,
    "userPropertyMaxNum": Code.MESSAGE_ILLEGAL,
    "maxMessagesPerBatch": Code.MESSAGE_ILLEGAL,
    "maxSubscriptionTags": Code.SUBSCRIPTION_PARSE_FAILED,
    "maxHeartbeatBytes": Code.MESSAGE_ILLEGAL,
    "maxBrokers": Code.NO_PERMISSION,
    "maxRegistrationBytes": Code.MESSAGE_ILLEGAL,
    "maxKvBytes": Code.NO_PERMISSION,
    # Older ones, whose refusals are counted as well.
    "maxMessageSize": Code.MESSAGE_ILLEGAL,
    "maxPopPollingSize": Code.POLLING_FULL,
    "popPollingSize": Code.POLLING_FULL,
    "osPageCacheBusyTimeOutMills": Code.SYSTEM_BUSY,
    "sendThreadPoolQueueCapacity": Code.SYSTEM_BUSY,
    "waitTimeMillsInSendQueue": Code.SYSTEM_BUSY,
}
"""The code with which each limit refuses; None closes the connection."""

CLOSING: Final = ("maxConnections", "maxConnectionsPerAddress", "maxFrameBytes", "maxHeaderBytes")
"""Limits that refuse one request and then close its connection."""


OURS_OF_CONNECTIONS: Final[dict[str, str]] = {
    "maxConnections": "none",
    "maxConnectionsPerAddress": "none",
    "maxFrameBytes": "the Java property `com.rocketmq.remoting.frameMaxLength`",
    "maxHeaderBytes": "none",
    "maxRequests": "the capacities of its thread pools' queues",
    "maxRequestsPerConnection": "none",
    "maxSlowRequestsPerConnection": "adminBrokerThreadPoolQueueCapacity, for all together",
    "frameTimeoutMills": "none",
    "readerTimeoutMills": "none",
    "maxSlowReaders": "none",
    "authenticationTimeoutMills": "none",
}
"""Limits that RocketMQ does not have, and what it has instead."""
OURS_OF_LIMITS: Final[dict[str, str]] = {
    **OURS_OF_CONNECTIONS,
    "maxTopics": "none",
    "maxGroups": "none",
    "maxQueuesPerTopic": "none",
    "maxPullPollingSize": "none",
    "maxPollingSizePerConnection": "none",
    "maxMessagesPerBatch": "none",
    "maxSubscriptionTags": "none",
    "maxHeartbeatBytes": "none",
}


OURS_OF_NAME_SERVERS: Final[dict[str, str]] = {
    **OURS_OF_CONNECTIONS,
    "maxBrokers": "none",
    "maxRegistrationBytes": "none",
    "maxKvBytes": "none",
}


class LimitReached(GantryError):
    """A request that a limit refuses; the text names the limit."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key, self.is_counted = key, False
        self.code = LIMITS[key] or Code.SYSTEM_ERROR  # type: ignore[misc]


class Refusals:
    """How often each limit of one server has refused something; refuses by raising."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        names = zip(limits.__struct_encode_fields__, limits.__struct_fields__, strict=True)
        self._fields = {key: field for key, field in names if key in LIMITS}
        self.counts = dict.fromkeys(self._fields, 0)
        """By the name of the setting, since the start."""
        self._logged: dict[str, tuple[float, int]] = {}

    def value(self, key: str) -> int:
        """The limit as it is now."""
        return int(getattr(self._limits, self._fields[key]))

    def count(self, key: str, who: str, times: int = 1) -> None:
        """Count refusals of a limit, and log them once in a while."""
        self.counts[key] += times
        now = asyncio.get_running_loop().time()
        since, before = self._logged.get(key, (float("-inf"), 0))
        if now - since >= LOG_SECONDS:
            count = self.counts[key]
            self._logged[key] = now, count
            log.warning(
                "%s is reached (now %d): %d refused, last %s",
                key,
                self.value(key),
                count - before,
                who,
            )

    def reached(self, key: str, what: str, who: str) -> LimitReached:
        """Count one refusal; the error to raise, whose text says what to do."""
        self.count(key, who)
        error = LimitReached(key, f"{what}: raise {key} (now {self.value(key)})")
        error.is_counted = True
        return error


def check_positive(limits: ConnectionLimits) -> None:
    """Raise a ConfigError that names a limit below 1: it would refuse everything."""
    kind = type(limits)
    for key, field in zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True):
        if key in LIMITS and getattr(limits, field) < 1:
            raise ConfigError(f"{key}={getattr(limits, field)}: write a number of at least 1")
