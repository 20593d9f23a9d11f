"""Reads files with lists of topic or group configurations, as the batch commands take them."""

from pathlib import Path
from typing import TypeVar

import msgspec

from gantrymq.cli.mqadmin.command import WrongOption
from gantrymq.protocol import fastjson

T = TypeVar("T")


def read_configs(path: str, kind: type[T], name: str) -> list[T]:
    """The configurations of a file; raises WrongOption, so that nothing is sent of a bad one."""
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        raise WrongOption(f"the file path {path} does not exists") from None
    try:
        rows = fastjson.loads(text)
        configs = msgspec.convert(rows, list[kind], strict=False)  # type: ignore[valid-type]
    except (ValueError, msgspec.ValidationError) as error:
        raise WrongOption(f"{path} has no list of configurations: {error}") from None
    if not configs:
        raise WrongOption(f"{path} has an empty list")
    if not all(isinstance(row, dict) and row.get(name) for row in rows):
        raise WrongOption(f"{path}: every configuration needs a {name}")
    return configs
