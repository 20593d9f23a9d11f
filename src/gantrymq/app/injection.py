"""The arguments of an app's handler: body, message, transaction, dependencies.

    async def paid(order: Order, db: Annotated[Db, Depends(connect)]) -> None: ...

The signature is read once, when the handler is declared, and mistakes are refused there.
"""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin

from gantrymq.app.payloads import decoder_of
from gantrymq.client.consume.handling.handler_check import is_foreign, wrong_transaction
from gantrymq.client.core.consumer_errors import HandlerRefused
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.messages.received import Received
from gantrymq.client.produce.producer import Producer

Invoke = Callable[..., Awaitable[Any]]
"""Calls a user's function, on the event loop or on a thread, and waits for its result."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A function whose result is the value of a parameter."""

    function: Callable[..., Any]


def Depends(function: Callable[..., Any]) -> Any:  # noqa: N802  # reads as FastAPI's and FastStream's
    """Give a parameter the result of a function: as its default, or in `Annotated`.

    The function may take the message (annotated `Delivery`), the app's `Producer` and dependencies
    of its own. It is called once for each message; one with a `yield` continues after the
    handler, before the message is acknowledged, and gets the handler's exception.
    """
    if not callable(function):
        raise HandlerRefused(f"Depends takes a function, not {function!r}")
    return Dependency(function)


@dataclass(slots=True)
class HandlerCall:
    """One call of a handler: the message and what its arguments are made of."""

    message: Delivery
    shown: Any
    """What a parameter for the message is given: itself, or its blocking face."""
    transaction: tuple[Any, ...]
    producer: Any
    invoke: Invoke
    stack: AsyncExitStack
    made: dict[Callable[..., Any], Any] = field(default_factory=dict)


Provide = Callable[[HandlerCall], Any]


class ArgumentPlan:
    """How the arguments of one function are made.

    A `blocking` function gets a blocking transaction, which may be annotated with the driver's own
    blocking class, for example `psycopg.Connection`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        transaction_kind: type | None = None,
        of_handler: bool = True,
        blocking: bool = False,
    ) -> None:
        self._name = getattr(function, "__qualname__", repr(function))
        self._kind, self._of_handler, self._blocking = transaction_kind, of_handler, blocking
        self.wants_transaction = False
        self._left = ["payload", "message", "transaction"] if of_handler else []
        self._positional: list[Provide] = []
        self._named: dict[str, Provide] = {}
        for parameter in self._parameters(function):
            self._add(parameter)
        if of_handler and len(self._left) == 3:
            raise self._refused()

    def _parameters(self, function: Callable[..., Any]) -> list[inspect.Parameter]:
        try:
            signature = inspect.signature(function, eval_str=True)
        except NameError as error:
            raise HandlerRefused(
                f"handler {self._name}: its annotations cannot be read: {error}"
            ) from error
        return list(signature.parameters.values())

    def _add(self, parameter: inspect.Parameter) -> None:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise self._refused()
        provide = self._provider(parameter)
        if provide is None:
            return  # it keeps its default
        if parameter.kind is parameter.KEYWORD_ONLY or self._named:
            self._named[parameter.name] = provide
        else:
            self._positional.append(provide)

    def _provider(self, parameter: inspect.Parameter) -> Provide | None:
        wanted, dependency = _split(parameter)
        if dependency is not None:
            return self._dependency(dependency)
        if _is_a(wanted, Producer):
            return lambda call: call.producer
        if self._kind is not None and _is_a(wanted, self._kind):
            self.wants_transaction = True
            self._take("transaction")
            return lambda call: call.transaction[0]
        if _is_a(wanted, Received) and (not self._of_handler or self._left != _ALL):
            self._take("message")
            return lambda call: call.shown
        return self._by_place(parameter, wanted)

    def _by_place(self, parameter: inspect.Parameter, wanted: Any) -> Provide | None:
        if parameter.kind is parameter.KEYWORD_ONLY or not self._left:
            if parameter.default is not parameter.empty:
                return None
            raise self._refused()
        place = self._left.pop(0)
        if place == "payload":
            if _is_a(wanted, Received):
                return lambda call: call.shown
            decode = decoder_of(wanted, self._name)
            return lambda call: decode(call.message)
        if place == "message":
            if wanted not in (parameter.empty, Any, object):
                raise HandlerRefused(
                    f"handler {self._name}: parameter {parameter.name} would be given the message; "
                    "annotate it as Delivery, or put the payload first"
                )
            return lambda call: call.shown
        if self._kind is not None and not self._blocking and is_foreign(wanted, self._kind):
            raise wrong_transaction(self._name, wanted, self._kind)
        self.wants_transaction = True
        return lambda call: call.transaction[0]

    def _take(self, place: str) -> None:
        if place in self._left:
            self._left.remove(place)

    def _dependency(self, dependency: Dependency) -> Provide:
        function = dependency.function
        plan = ArgumentPlan(function, transaction_kind=self._kind, of_handler=False)
        self.wants_transaction |= plan.wants_transaction

        async def provide(call: HandlerCall) -> Any:
            if function not in call.made:
                arguments, named = await plan.arguments(call)
                call.made[function] = await _made(function, call, arguments, named)
            return call.made[function]

        return provide

    def _refused(self) -> HandlerRefused:
        right = "(payload), (payload, message) or (payload, message, transaction)"
        if not self._of_handler:
            right = "a message (annotated Delivery), a Producer"
        return HandlerRefused(
            f"handler {self._name} must take {right}, and what Depends(...) gives"
        )

    async def arguments(self, call: HandlerCall) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for one message."""
        positional = [await _ready(provide(call)) for provide in self._positional]
        named = {name: await _ready(provide(call)) for name, provide in self._named.items()}
        return positional, named


_ALL = ["payload", "message", "transaction"]


async def _ready(value: Any) -> Any:
    return await value if inspect.iscoroutine(value) else value


def _split(parameter: inspect.Parameter) -> tuple[Any, Dependency | None]:
    """The annotated type of a parameter, and its dependency."""
    wanted = parameter.annotation
    if isinstance(parameter.default, Dependency):
        return wanted, parameter.default
    if get_origin(wanted) is Annotated:
        wanted, *notes = get_args(wanted)
        return wanted, next((note for note in notes if isinstance(note, Dependency)), None)
    return wanted, None


def _is_a(wanted: Any, kind: type) -> bool:
    plain = get_origin(wanted) or wanted
    return isinstance(plain, type) and issubclass(plain, kind)


async def _made(
    function: Callable[..., Any], call: HandlerCall, arguments: list[Any], named: dict[str, Any]
) -> Any:
    if inspect.isasyncgenfunction(function):
        block = asynccontextmanager(function)(*arguments, **named)
        return await call.stack.enter_async_context(block)
    if inspect.isgeneratorfunction(function):
        return await _entered(contextmanager(function)(*arguments, **named), call)
    return await call.invoke(function, *arguments, **named)


async def _entered(block: AbstractContextManager[Any], call: HandlerCall) -> Any:
    value = await call.invoke(block.__enter__)

    async def leave(*error: Any) -> bool | None:
        left: bool | None = await call.invoke(block.__exit__, *error)
        return left

    call.stack.push_async_exit(leave)
    return value
