"""The smallest and largest values of settings.

Beyond them a broker would spin, refuse every request or not start.
"""

from typing import Final

import msgspec

from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.network import split_address

NO_END: Final = 2**63 - 1
PORT: Final = (-1, 65_535)
MILLISECONDS: Final = (1, NO_END)
COUNT: Final = (1, NO_END)
PERCENT: Final = (0, 100)

LIMITS: Final = {
    "listenPort": (0, 65_535), "fastListenPort": PORT, "haListenPort": PORT,
    "brokerPermission": (0, 7), "defaultTopicQueueNums": COUNT, "reviveQueueNum": COUNT,
    "transactionTimeOut": MILLISECONDS, "transactionCheckMax": COUNT,
    "transactionCheckInterval": MILLISECONDS, "timerPrecisionMs": MILLISECONDS,
    "timerMaxDelaySec": COUNT, "reviveInterval": MILLISECONDS,
    "popFromRetryProbability": PERCENT, "waitTimeMillsInSendQueue": (0, NO_END),
    "registerBrokerTimeoutMills": MILLISECONDS, "flushConsumerOffsetInterval": MILLISECONDS,
    "flushDelayOffsetInterval": MILLISECONDS, "shortPollingTimeMills": MILLISECONDS,
    "sendThreadPoolQueueCapacity": COUNT, "maxTransferCountOnMessageInMemory": COUNT,
    "maxTransferBytesOnMessageInMemory": COUNT, "defaultQueryMaxNum": COUNT,
    "maxMsgsNumBatch": COUNT, "flushIntervalCommitLog": MILLISECONDS,
    "flushCommitLogLeastPages": (0, NO_END), "flushCommitLogThoroughInterval": MILLISECONDS,
    "syncFlushTimeout": MILLISECONDS, "fileReservedTime": (0, NO_END),
    "deleteFileBatchMax": COUNT, "diskMaxUsedSpaceRatio": PERCENT,
    "diskSpaceCleanForciblyRatio": PERCENT, "diskSpaceWarningLevelRatio": PERCENT,
    "cleanResourceInterval": MILLISECONDS, "maxMessageSize": COUNT,
    "slaveTimeout": MILLISECONDS, "haMaxGapNotInSync": COUNT, "brokerId": (0, NO_END),
    "accessMessageInMemoryMaxRatio": PERCENT, "raftElectionTimeout": (50, NO_END),
    "raftAppendBytesMax": (1, 16 * 1024 * 1024),
}  # fmt: skip

STEPS: Final = {
    "mappedFileSizeCommitLog": (4_096, 512),
    "mappedFileSizeConsumeQueue": (20, 20),
    "maxHashSlotNum": (1, 1),
    "maxIndexNum": (2, 1),
}
"""Sizes of files, where 0 is the profile's: the smallest, and what they are a multiple of."""


def check_limits(config: msgspec.Struct) -> None:
    """Raise a ConfigError that names the setting and the allowed values."""
    names = dict(zip(config.__struct_encode_fields__, config.__struct_fields__, strict=True))
    for key, (low, high) in LIMITS.items():
        value = getattr(config, names[key])
        if not low <= value <= high:
            wanted = f"from {low} to {high}" if high < NO_END else f"of at least {low}"
            raise ConfigError(f"{key}={value}: write a number {wanted}")
    for key, (low, step) in STEPS.items():
        value = getattr(config, names[key])
        if value and (value < low or value % step):
            raise ConfigError(f"{key}={value}: write 0, or a multiple of {step} from {low} on")


def check_hours(key: str, text: str) -> None:
    """Raise a ConfigError unless the text is hours like `04` or `02;04`, or empty for none."""
    hours = [part.strip() for part in text.split(";")] if text.strip() else []
    if not all(hour.isdecimal() and int(hour) < 24 for hour in hours):
        raise ConfigError(f"{key}={text}: write hours from 00 to 23, separated by semicolons")


def check_address(key: str, address: str, default_port: int | None = None) -> None:
    """Raise a ConfigError unless this is an address; without a default it needs a port."""
    try:
        split_address(address, default_port)
    except GantryError as error:
        raise ConfigError(f"{key}: {error}") from error


def check_access(acl: bool, authentication: bool, authorization: bool) -> None:
    """Raise a ConfigError for two kinds of access control at once, or half of one."""
    if acl and authentication:
        raise ConfigError(
            "aclEnable and authenticationEnabled: take either the access files of 4.9 or the users "
            "of 5.3. An admin of the access files can make users before you change the setting"
        )
    if authorization and not authentication:
        raise ConfigError(
            "authorizationEnabled: write authenticationEnabled=true, too; without signatures a "
            "client is whichever user it says"
        )
