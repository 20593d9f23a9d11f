"""The registration of a consumer's handler: checks it, and refuses a second one."""

from collections.abc import Callable
from typing import Any

from gantrymq.client.consume.handling.handler_check import check_handler
from gantrymq.client.consume.handling.workers import Work
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.once.guard import Once


class HandlerRegistration:
    """The handler of one consumer; an `once` guards it against doubles."""

    def __init__(self, once: Once | None, batch_max: int) -> None:
        self._once, self._batch_max = once, batch_max
        self.work: Work | None = None
        """The registered handler as workers run it; None before."""

    def register(self, function: Callable[..., Any], batch: int | None) -> Work:
        """Take the handler; with a `batch` it gets lists of up to so many messages."""
        size = self._batch_max if batch is None else batch
        as_list = batch is not None or size > 1
        once = self._once
        given = "messages" if as_list else "message"
        in_transaction = once is not None and once.transaction
        check_handler(
            function,
            arguments=(given, "transaction") if in_transaction else (given,),
            given=Delivery,
            as_list=as_list,
            transaction=once.transaction_kind if once is not None else None,
        )
        if self.work is not None:
            raise ConsumerMisused("a consumer has one handler; look at `message.topic` in it")
        if once is not None:
            function = once.guard(function, as_list=as_list)
        self.work = Work(function, size, as_list=as_list)
        return self.work
