"""Settings changed while a broker runs: kept beside its tables, in force from its next start."""

import logging

import msgspec

from gantrymq.base.config import as_text, format_properties, parse_properties, unknown_key
from gantrymq.base.disk import Disk
from gantrymq.base.errors import ConfigError
from gantrymq.base.files import load_text
from gantrymq.base.offload import Offload
from gantrymq.broker.config import BrokerConfig
from gantrymq.broker.errors import BadRequest, NotPermitted
from gantrymq.broker.rocketmq_keys import IGNORED_KEYS
from gantrymq.broker.saved import SavedFile

log = logging.getLogger(__name__)

FIXED = frozenset(
    {
        "brokerConfigPath", "rocketmqHome", "configBlackList", "brokerName", "brokerClusterName",
        "brokerId", "brokerIP1", "brokerIP2", "bindAddress", "listenPort", "fastListenPort",
        "haListenPort", "storePathRootDir", "storePathCommitLog", "storeProfile",
        "mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "maxHashSlotNum", "maxIndexNum",
        "logDirectory",
    }
)  # fmt: skip
"""Who and where a broker is, and how its store is laid out: for its own file, not for a call."""


def _path(config: BrokerConfig) -> str:
    return f"{config.store_path_root_dir}/config/brokerOverrides.properties"


def _applied(config: BrokerConfig, changes: dict[str, str]) -> BrokerConfig:
    known = {k: v for k, v in changes.items() if k in config.__struct_encode_fields__}
    return msgspec.convert(as_text(config) | known, BrokerConfig, strict=False)


def with_overrides(config: BrokerConfig, disk: Disk) -> BrokerConfig:
    """The settings of the file with what was changed since on top."""
    text = load_text(disk, _path(config))
    changes = parse_properties(text) if text is not None else {}
    if not changes:
        return config
    log.info("settings changed earlier: %s", ", ".join(f"{k}={v}" for k, v in changes.items()))
    try:
        return _applied(config, changes)
    except (msgspec.ValidationError, ConfigError) as error:
        raise ConfigError(f"{_path(config)}: {error}; mend or delete it") from error


class Overrides:
    """The changes of one broker."""

    def __init__(self, config: BrokerConfig, disk: Disk, offload: Offload) -> None:
        self._config = config
        self._file = SavedFile(disk, offload, _path(config))
        text = load_text(disk, _path(config))
        self.changes = parse_properties(text) if text is not None else {}

    @property
    def settings(self) -> dict[str, str]:
        """All settings, with the changes that wait for the next start."""
        return as_text(self._config) | self.changes

    async def change(self, wanted: dict[str, str]) -> None:
        """Check all and keep all, or refuse all."""
        refused = sorted(FIXED & wanted.keys())
        if refused:
            raise NotPermitted(f"Can not update config in black list: {', '.join(refused)}")
        known = self._config.__struct_encode_fields__
        for key in wanted:
            if key not in known and key not in IGNORED_KEYS:
                raise BadRequest(unknown_key(key, known))
        changes = self.changes | wanted
        try:
            _applied(self._config, changes)
        except (msgspec.ValidationError, ConfigError) as error:
            raise BadRequest(f"not changed: {error}") from error
        try:
            await self._file.save(format_properties(changes))
        except OSError as error:
            raise BadRequest(f"not changed, the file cannot be saved: {error}") from error
        self.changes = changes
