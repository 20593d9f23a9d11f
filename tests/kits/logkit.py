"""Loggers of this process, as they were before a test changed them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from gantrymq.base.telemetry import set_levels
from gantrymq.base.telemetry_settings import TelemetrySettings


@contextmanager
def loggers_restored() -> Iterator[None]:
    """Handlers and levels of the root and of gantrymq are afterwards as they are now."""
    root, package = logging.getLogger(), logging.getLogger("gantrymq")
    before = root.handlers, root.level, package.level
    try:
        yield
    finally:
        set_levels(TelemetrySettings())  # parts have no levels of their own any more
        root.handlers = before[0]
        root.setLevel(before[1])
        package.setLevel(before[2])
