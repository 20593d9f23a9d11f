"""The blocking dead letters of a group."""

from collections.abc import Iterator, Sequence

from gantrymq.client.admin.dead_letters import ALL, DeadLetterFilter, Letter
from gantrymq.client.admin.dead_letters import DeadLetters as AsyncDeadLetters
from gantrymq.client.core.instance import Hook
from gantrymq.client.core.options import ClientOptions
from gantrymq.sync.portal import BlockingClient, Portal, blocking


class DeadLetters(BlockingClient[AsyncDeadLetters]):
    """The dead letters of one group, on all its brokers."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        client: ClientOptions | None = None,
        hooks: Sequence[Hook] = (),
        portal: Portal | None = None,
    ) -> None:
        super().__init__(
            lambda: AsyncDeadLetters(namesrv, group=group, client=client, hooks=hooks), portal
        )

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
