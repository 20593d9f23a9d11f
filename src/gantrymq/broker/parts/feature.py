"""The hooks of a feature: what the broker calls besides request handlers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace

from gantrymq.remoting.connection import Connection
from gantrymq.store.retention import MayDelete

Step = Callable[[], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """The hooks of one feature; the broker's app calls all of them, in this order."""

    opening: tuple[Step, ...] = ()
    """Awaited before the ports open."""
    background: tuple[Step, ...] = ()
    """Work that goes on for as long as the broker serves; cancelled when it stops."""
    saves: tuple[tuple[float, Step], ...] = ()
    """What is written to disk every so many seconds."""
    on_lost: tuple[Callable[[Connection], None], ...] = ()
    """Called for every connection that closed."""
    on_stop: tuple[Callable[[], None], ...] = ()
    """Called before the ports close: requests that are held get their answer."""
    closing: tuple[Step, ...] = ()
    """Called once nobody is served any more, while the store still takes messages; the last
    feature first."""
    before_delete: tuple[MayDelete, ...] = ()
    """Asked before retention deletes log files, to save what waits in them."""
    on_settings: tuple[Callable[[], None], ...] = ()
    """Called when settings changed, by those who keep copies of them."""


def joined(*features: Feature) -> Feature:
    """All features as one, in their order."""
    names = [field.name for field in fields(Feature)]
    return Feature(
        **{name: tuple(step for each in features for step in getattr(each, name)) for name in names}
    )


def without_work(feature: Feature) -> Feature:
    """The hooks of a feature on a slave: it answers, but stores no messages of its own.

    What waits in old log files its master copies forward, and the slave gets the copies.
    """
    return replace(feature, opening=(), background=(), saves=(), closing=(), before_delete=())
