"""The blocking dead letters of a group."""

from collections.abc import Iterator
from functools import partial
from typing import Any, overload

from gantrymq.client.admin.letters.dead_letters import ALL, DeadLetterFilter, Letter
from gantrymq.client.admin.letters.dead_letters import DeadLetters as AsyncDeadLetters
from gantrymq.sync.portal import BlockingClient, Portal, arguments_of, blocking


class DeadLetters(BlockingClient[AsyncDeadLetters]):
    """The dead letters of one group, on all its brokers."""

    @overload
    @arguments_of(AsyncDeadLetters)
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *given: Any, portal: Portal | None, **named: Any) -> None: ...

    def __init__(self, *given: Any, portal: Portal | None = None, **named: Any) -> None:
        super().__init__(partial(AsyncDeadLetters, *given, **named), portal)

    page = blocking(AsyncDeadLetters.page)
    one = blocking(AsyncDeadLetters.one)
    statistics = blocking(AsyncDeadLetters.statistics)
    mend = blocking(AsyncDeadLetters.mend)
    resend = blocking(AsyncDeadLetters.resend)
    resend_all = blocking(AsyncDeadLetters.resend_all)

    def all(self, wanted: DeadLetterFilter = ALL) -> Iterator[Letter]:
        """Every letter there is, page by page, oldest first."""
        after: str | None = None
        while True:
            page = self.page(wanted, after=after)
            yield from page.letters
            if page.after is None:
                return
            after = page.after
