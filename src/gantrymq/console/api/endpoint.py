"""An endpoint: method, path, question, answer and function, declared once.

    TABLE = EndpointTable("topics")

    @TABLE.get("/clusters/{cluster}/topics/{topic}")
    async def show_topic(ask: Ask, wanted: WantedTopic) -> TopicDetails:
        '''A topic: its queues, route and groups.'''

The question is one struct. Its fields come from the path, from the query of a GET or DELETE, or
from the JSON body of a POST or PUT. Pages call the same function with the same struct.

An endpoint that is no GET changes something: whoever calls its function, it asks first whether the
user may, and leaves an entry in the audit trail.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeVar, cast, get_type_hints

import msgspec

from gantrymq.console.api.ask import Ask

PREFIX: Final = "/api/v1"
JSON_ONLY: Final = ("application/json",)


class Question(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The base of all questions: a misspelt name is an error, not a default."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all answers."""


class OfCluster(Question, frozen=True, kw_only=True):
    """A question about one cluster."""

    cluster: str
    """The name under which the console knows the cluster."""


class Done(Answer, frozen=True, kw_only=True):
    """The answer of an endpoint that changes something."""

    text: str
    """What was done, in a sentence."""


@dataclass(frozen=True)
class Download:
    """An answer that is no JSON: a file, or a stream that goes on until the reader leaves."""

    media_type: str
    chunks: AsyncIterator[bytes]
    file_name: str = ""
    policy: str = ""
    """Its Content-Security-Policy, instead of that of the console's pages."""


Function = Callable[..., Awaitable[Any]]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True)
class Endpoint:
    """One call of the API."""

    subject: str
    method: str
    path: str
    """Below /api/v1, with the names of fields in braces."""
    function: Function
    question: type[Question]
    answer: type[Answer] | type[Download]
    media_types: tuple[str, ...] = JSON_ONLY

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def summary(self) -> str:
        """The first paragraph of the function's docstring."""
        return " ".join(inspect.getdoc(self.function).split("\n\n")[0].split())  # type: ignore[union-attr]

    @property
    def is_change(self) -> bool:
        """Whether it changes something, so that readers may not call it."""
        return self.method != "GET"


class EndpointTable:
    """The endpoints of one subject."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.endpoints: list[Endpoint] = []

    def get(self, path: str, *media_types: str) -> Callable[[F], F]:
        """A question; its answer is JSON, or a `Download` of one of these types."""
        return self._declare("GET", path, media_types or JSON_ONLY)

    def post(self, path: str) -> Callable[[F], F]:
        return self._declare("POST", path)

    def put(self, path: str) -> Callable[[F], F]:
        return self._declare("PUT", path)

    def delete(self, path: str) -> Callable[[F], F]:
        return self._declare("DELETE", path)

    def _declare(
        self, method: str, path: str, media_types: tuple[str, ...] = JSON_ONLY
    ) -> Callable[[F], F]:
        def declare(function: F) -> F:
            hints = get_type_hints(function)
            _, question = inspect.signature(function).parameters
            served = function if method == "GET" else _noted(function)
            self.endpoints.append(
                Endpoint(
                    self.subject, method, path, served, hints[question], hints["return"],
                    media_types,
                )
            )  # fmt: skip
            return served

        return declare


def _noted(function: F) -> F:
    """The function behind the question whether the user may, with an entry in the audit trail."""

    @wraps(function)
    async def change(ask: Ask, question: Question) -> object:
        async with ask.change(function.__name__, msgspec.to_builtins(question)):
            return await function(ask, question)

    return cast(F, change)
