"""Checks a handler when it is registered, so that a mistake shows before the first message."""

import inspect
from collections.abc import Callable
from typing import Any, Union

from gantrymq.client.core.consumer_errors import HandlerRefused


def check_handler(
    function: Callable[..., Any],
    *,
    arguments: tuple[str, ...],
    given: type,
    as_list: bool = False,
    may_wait: bool = True,
    must_wait: bool = False,
    transaction: type | None = None,
) -> None:
    """Refuse a function that cannot be called with these arguments or would not be awaited.

    `given` is the class of the messages; with `as_list` a handler gets a list of them. Where
    handlers run on threads they must not be coroutine functions (`may_wait=False`). `transaction`
    is the class of the second argument, if it is known.
    """
    if not callable(function):
        raise HandlerRefused(f"a handler is a function, not {function!r}")
    name = getattr(function, "__qualname__", repr(function))
    check_kind(name, function, may_wait=may_wait)
    if must_wait and not inspect.iscoroutinefunction(function):
        raise HandlerRefused(f"{name} must be `async`: it waits for what it is wrapped around")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a built-in function without a signature
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise HandlerRefused(
            f"handler {name}{signature} must take ({', '.join(arguments)}): {error}"
        ) from None
    _check_annotations(name, function, list if as_list else given, given, transaction)


def check_kind(name: str, function: Callable[..., Any], *, may_wait: bool) -> None:
    """Refuse generators, and coroutine functions where handlers run on threads."""
    whole = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004  # the method itself is wanted
    if inspect.isgeneratorfunction(whole) or inspect.isasyncgenfunction(whole):
        raise HandlerRefused(f"handler {name} has a `yield`: it would never run; return instead")
    if not may_wait and inspect.iscoroutinefunction(whole):
        raise HandlerRefused(
            f"handler {name} is `async`: gantrymq.sync runs handlers on threads. Write it without "
            "`async`, or use gantrymq.Consumer"
        )


def _check_annotations(
    name: str, function: Callable[..., Any], right: type, given: type, transaction: type | None
) -> None:
    """Refuse an annotation with a class that no message can be."""
    try:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
    except Exception:
        return  # an annotation that cannot be resolved is not checked
    annotated = [each.annotation for each in parameters]
    if annotated and is_foreign(annotated[0], right):
        what = f"a {given.__name__}" if right is given else f"a list of {given.__name__} objects"
        raise HandlerRefused(
            f"handler {name} takes a {annotated[0].__name__}, but is given {what}; gantrymq.App "
            "gives handlers the body as a type"
        )
    if len(annotated) > 1 and transaction is not None and is_foreign(annotated[1], transaction):
        raise wrong_transaction(name, annotated[1], transaction)


def wrong_transaction(name: str, wanted: type, right: type) -> HandlerRefused:
    """The error for a handler that was written for another store."""
    return HandlerRefused(
        f"handler {name} takes a {wanted.__name__} as its transaction, but the transactions of its "
        f"`once` are {right.__module__}.{right.__qualname__} objects"
    )


def is_foreign(wanted: Any, right: type) -> bool:
    """Whether an annotation is a class that an object of the right one is not."""
    if wanted in (inspect.Parameter.empty, Any):
        return False
    plain = getattr(wanted, "__origin__", wanted)  # also of `Annotated`
    if plain is Union or not isinstance(plain, type) or getattr(plain, "_is_protocol", False):
        return False  # the members of a protocol decide, and they need not be checkable
    return not (issubclass(right, plain) or issubclass(plain, right))
