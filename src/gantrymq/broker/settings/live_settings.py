"""Settings of a running broker: those in force, and those that a request may change.

A change is first written to the broker's own file, the one that `-c` names. Settings in `LIVE` are
then set in the `BrokerConfig` that all parts share, and are in force at once; the others wait for
the next start. At a start the command line wins over the file, so a change does not survive an
option that says otherwise.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from gantrymq.base.config import as_text, convert, replace_properties
from gantrymq.base.disk import Disk
from gantrymq.base.errors import ConfigError
from gantrymq.base.files import load_text
from gantrymq.base.offload import Offload
from gantrymq.base.own_file import take_over, with_saved
from gantrymq.base.saved import SavedFile
from gantrymq.base.telemetry_settings import without_secrets
from gantrymq.broker.errors import BadRequest, NotPermitted
from gantrymq.broker.settings.config import OLD_NAMES, BrokerConfig
from gantrymq.broker.settings.rocketmq_keys import IGNORED_KEYS, STATED
from gantrymq.remoting.limits import OURS_OF_LIMITS

log = logging.getLogger(__name__)

FIXED: Final = frozenset(
    {
        "brokerConfigPath", "rocketmqHome", "configBlackList", "brokerName", "brokerClusterName",
        "brokerId", "brokerRole", "brokerIP1", "brokerIP2", "bindAddress", "listenPort",
        "fastListenPort", "haListenPort", "storePathRootDir", "storePathCommitLog", "storeProfile",
        "mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "maxHashSlotNum", "maxIndexNum",
        "logDirectory", "enableDLegerCommitLog", "dLegerGroup", "dLegerPeers", "dLegerSelfId",
        "aclEnable", "aclFile", "innerClientAuthenticationCredentials", "authenticationEnabled",
        "authorizationEnabled", "initAuthenticationUser", "authenticationWhitelist",
        "authorizationWhitelist",
    }
)  # fmt: skip
"""Who and where a broker is, and how its store is laid out: for its own file, not for a call."""

LIVE: Final = frozenset(
    {
        *OURS_OF_LIMITS, "userPropertyMaxNum",
        "accessMessageInMemoryMaxRatio", "autoCreateSubscriptionGroup", "autoCreateTopicEnable",
        "brokerFastFailureEnable",
        "brokerPermission", "cleanResourceInterval", "defaultMessageRequestMode",
        "defaultPopShareQueueNum", "defaultQueryMaxNum", "deleteFileBatchMax", "deleteWhen",
        "diskMaxUsedSpaceRatio", "diskSpaceCleanForciblyRatio", "diskSpaceWarningLevelRatio",
        "enableMixedMessageType", "enablePropertyFilter", "enableRetryTopicV2",
        "fileReservedTime", "filterSupportRetry", "flushCommitLogLeastPages",
        "flushCommitLogThoroughInterval", "flushDiskType", "flushIntervalCommitLog",
        "logLevel", "logLevels", "longPollingEnable", "maxMessageSize", "maxMsgsNumBatch",
        "maxPopPollingSize",
        "maxTransferBytesOnMessageInMemory", "maxTransferCountOnMessageInMemory",
        "messageDelayLevel", "metricsLagPerQueue", "namesrvAddr", "notifyConsumerIdsChangedEnable",
        "osPageCacheBusyTimeOutMills", "popFromRetryProbability", "popPollingSize",
        "recallMessageEnable", "regionId", "registerBrokerTimeoutMills",
        "registerNameServerPeriod", "rejectTransactionMessage",
        "retrieveMessageFromPopRetryTopicV1", "reviveInterval", "sendThreadPoolQueueCapacity",
        "shortPollingTimeMills", "slaveReadEnable", "storeReplyMessageEnable",
        "strictSubscriptions", "strictSubscriptionsGraceMills", "syncFlushTimeout",
        "timerMaxDelaySec", "traceTopicEnable", "transactionCheckInterval", "transactionCheckMax",
        "transactionTimeOut", "useServerSideResetOffset", "waitTimeMillsInSendQueue",
    }
)  # fmt: skip
"""What is read each time it is needed, so that a change is in force at once.

Each has a test of its effect: tests/cluster/test_settings_in_force.py."""


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """The settings of one request, by what became of them."""

    live: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    """In force from the next start."""
    inert: tuple[str, ...] = ()
    """Known to RocketMQ, without meaning here."""
    unknown: tuple[str, ...] = ()

    @property
    def remark(self) -> str | None:
        """The remark of the answer; None when all settings are in force."""
        words = []
        if self.later:
            words.append(f"in force from the next start of this broker: {', '.join(self.later)}")
        if self.inert:
            words.append(f"no effect here: {', '.join(self.inert)}")
        if self.unknown:
            words.append(f"unknown, passed over: {', '.join(self.unknown)}")
        return "; ".join(words) or None


def own_file(config: BrokerConfig) -> str:
    """The file into which this broker writes changed settings."""
    return config.broker_config_path or f"{config.store_path_root_dir}/config/broker.properties"


def warn_of_old_file(config: BrokerConfig, disk: Disk) -> None:
    """Log a warning if changes of an early version lie in the old file, which is not read."""
    old = f"{config.store_path_root_dir}/config/brokerOverrides.properties"
    if disk.exists(old):
        log.warning(
            "%s is no longer read: write its settings to %s and delete it", old, own_file(config)
        )


def with_own_file(config: BrokerConfig, disk: Disk, stronger: Collection[str] = ()) -> BrokerConfig:
    """The settings with the changes of earlier runs, for a broker started without `-c`.

    Settings named in `stronger` come from the command line and stay.
    """
    if config.broker_config_path:
        return config
    return with_saved(config, disk, own_file(config), fixed=FIXED, stronger=stronger)


class BrokerSettings:
    """The settings of one running broker."""

    def __init__(self, config: BrokerConfig, disk: Disk, offload: Offload) -> None:
        self._config, self._disk = config, disk
        self._path = own_file(config)
        self._file = SavedFile(disk, offload, self._path)
        self._turn = asyncio.Lock()
        self.changed: list[Callable[[Collection[str]], None]] = []
        """Called with the keys that are in force now."""

    @property
    def in_force(self) -> dict[str, str]:
        """All settings as they are at this moment."""
        return as_text(self._config)

    @property
    def shown(self) -> dict[str, str]:
        """All settings, and what tools of RocketMQ read besides.

        exportMetrics takes the size of a thread pool of Java's for the number of CPUs.
        """
        found = self.in_force
        old_names = {old: found[new] for old, new in OLD_NAMES.items()}
        cpus = {"clientCallbackExecutorThreads": str(os.cpu_count() or 1)}
        return {**STATED, **cpus, **old_names, **without_secrets(BrokerConfig, found)}

    async def change(self, wanted: dict[str, str]) -> SettingsChange:
        """Check all settings and take over all, or refuse all. Unknown keys are ignored.

        RocketMQ's broker answers unknown keys with success, and some tools send them to every
        version.
        """
        wanted = {OLD_NAMES.get(key, key): value for key, value in wanted.items()}
        if FIXED & wanted.keys():
            raise NotPermitted("Can not update config in black list.")
        known = {k: v.strip() for k, v in wanted.items() if k in self.in_force}
        unknown = wanted.keys() - known.keys() - IGNORED_KEYS
        if unknown:
            log.warning("unknown settings passed over: %s", ", ".join(sorted(unknown)))
        live = sorted(known.keys() & LIVE)
        async with self._turn:  # two at once would overwrite each other's file
            new = self._checked(known)
            if known:
                await self._write(known)
            take_over(self._config, new, live)
        for tell in self.changed:
            tell(live)
        return SettingsChange(
            tuple(live),
            tuple(sorted(known.keys() - LIVE)),
            tuple(sorted(wanted.keys() & IGNORED_KEYS)),
            tuple(sorted(unknown)),
        )

    def _checked(self, known: dict[str, str]) -> BrokerConfig:
        try:
            return convert(BrokerConfig, self.in_force | known, {})
        except ConfigError as error:
            raise BadRequest(f"not changed: {error}") from error

    async def _write(self, known: dict[str, str]) -> None:
        before = load_text(self._disk, self._path) or ""
        try:
            await self._file.save(replace_properties(before, known))
        except OSError as error:
            raise BadRequest(
                f"not changed: {self._path} cannot be written: {error.strerror}"
            ) from error
