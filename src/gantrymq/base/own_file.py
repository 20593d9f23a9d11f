"""A server's own property file: it keeps settings that admin requests changed."""

import logging
from collections.abc import Collection, Iterable
from typing import TypeVar

import msgspec

from gantrymq.base.config import WrittenSettings, as_text, convert
from gantrymq.base.disk import Disk
from gantrymq.base.files import load_text

log = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)


def with_saved(
    config: T, disk: Disk, path: str, *, fixed: Collection[str], stronger: Collection[str]
) -> T:
    """The settings, overridden by those of the file.

    Keys in `fixed` are never taken from the file; keys in `stronger` stand on the command line and
    win.
    """
    written = WrittenSettings.in_text(load_text(disk, path) or "", path)
    chosen = {
        key: value.strip()
        for key, value in written.values.items()
        if key in config.__struct_encode_fields__ and key not in fixed and key not in stronger
    }
    if not chosen:
        return config
    log.info("settings of %s: %s", path, ", ".join(f"{k}={v}" for k, v in chosen.items()))
    return convert(type(config), as_text(config) | chosen, written.places)


def take_over(config: T, wanted: T, keys: Iterable[str]) -> None:
    """Set some settings, by RocketMQ's names, in a struct that others hold."""
    names = dict(zip(config.__struct_encode_fields__, config.__struct_fields__, strict=True))
    for key in keys:
        value = getattr(wanted, names[key])
        log.info("%s=%s", key, value)
        setattr(config, names[key], value)
