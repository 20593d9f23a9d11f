"""Blocking searches for messages."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from gantrymq.client.admin.messages.message_search import Finder as AsyncFinder
from gantrymq.sync.portal import blocking

if TYPE_CHECKING:
    from gantrymq.sync.admin import Admin

T = TypeVar("T")


class Finder:
    """Searches of one cluster, through a started `gantrymq.sync.Admin`."""

    def __init__(self, admin: "Admin") -> None:
        self._admin = admin

    def _run(self, work: Callable[[AsyncFinder], Coroutine[Any, Any, T]]) -> T:
        return self._admin._run(lambda target: work(AsyncFinder(target)))

    by_id = blocking(AsyncFinder.by_id)
    by_key = blocking(AsyncFinder.by_key)
    by_time = blocking(AsyncFinder.by_time)
    at = blocking(AsyncFinder.at)
