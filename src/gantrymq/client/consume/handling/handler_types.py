"""The types of handlers that `@consumer.handler` takes, for type checkers."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, overload

from gantrymq.client.messages.consume_status import ConsumeStatus
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.once.store import Tx

HandlerResult = Awaitable[ConsumeStatus | None] | ConsumeStatus | None
R = TypeVar("R", bound=HandlerResult)
H = TypeVar("H", bound=Callable[[Delivery], HandlerResult])
B = TypeVar("B", bound=Callable[[list[Delivery]], HandlerResult])


class BatchDecorator(Protocol[Tx]):
    """Registers a function that gets a list, and with `once` in a transaction the transaction."""

    @overload
    def __call__(self, function: B, /) -> B: ...

    @overload
    def __call__(
        self, function: Callable[[list[Delivery], Tx], R], /
    ) -> Callable[[list[Delivery], Tx], R]: ...
