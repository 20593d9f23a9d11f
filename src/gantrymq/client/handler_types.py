"""What `@consumer.handler` takes, told to type checkers."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, overload

from gantrymq.client.consume_status import ConsumeStatus
from gantrymq.client.delivery import Delivery
from gantrymq.client.once.store import Tx

Outcome = Awaitable[ConsumeStatus | None] | ConsumeStatus | None
R = TypeVar("R", bound=Outcome)
H = TypeVar("H", bound=Callable[[Delivery], Outcome])
B = TypeVar("B", bound=Callable[[list[Delivery]], Outcome])


class BatchDecorator(Protocol[Tx]):
    """Registers a function that gets lists; with `once` in a transaction also the transaction."""

    @overload
    def __call__(self, function: B, /) -> B: ...

    @overload
    def __call__(
        self, function: Callable[[list[Delivery], Tx], R], /
    ) -> Callable[[list[Delivery], Tx], R]: ...
