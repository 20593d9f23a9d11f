"""Errors of a store that cannot be opened."""

from gantrymq.base.errors import ConfigError, GantryError


class StoreError(GantryError):
    """The store cannot be used as it is; the text says why."""


class LayoutError(ConfigError):
    """The store was laid out with other file sizes than the configured ones."""
