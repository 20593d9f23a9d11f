"""The page `docs/requests.md`: `python -m gantrymq.cli.pages.requests` prints it.

Who answers a request and what the answer is comes from the tables of handlers and from their
docstrings, so that the page cannot say anything else.
"""

import re
from collections.abc import Callable, Iterator
from inspect import getdoc
from types import SimpleNamespace
from typing import Any, NamedTuple, get_type_hints

from gantrymq.broker.routes import Handlers, broker_routes
from gantrymq.nameserver.handlers import NameServerHandlers
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.refusals import REFUSED

PREFACE = """\
# Requests

Printed by `python -m gantrymq.cli.pages.requests`: every request code of RocketMQ up to 5.5.0 and
of GantryMQ, and who answers it. Numbers from 40100 on are ours; RocketMQ's servers answer them
with 3 (REQUEST_CODE_NOT_SUPPORTED).

A refused request is answered with code 3 and with the reason as its remark. Where an answer differs
from RocketMQ's on purpose the text says so; otherwise recordings of real brokers of 4.9.7 and 5.3.3
hold it (`tests/dialogues`).

RocketMQ names some numbers that no server of any release answers; ours answer 3 as well: 13, 22,
23, 27, 47, 209 to 214, 301 and 302.
"""
PUSHED = {
    Code.CHECK_TRANSACTION_STATE: "what became of a half message",
    Code.NOTIFY_CONSUMER_IDS_CHANGED: "the members of a group have changed",
    Code.RESET_CONSUMER_CLIENT_OFFSET: "the group's progress was reset",
    Code.GET_CONSUMER_STATUS_FROM_CLIENT: "how far a member is",
    Code.PUSH_REPLY_MESSAGE_TO_CLIENT: "the reply to a request of this client",
}
"""Codes that brokers send and clients answer."""

_TEXT = re.compile(r"^[A-Z0-9_]+ \(\d+\)[^:]*: (.+)", re.DOTALL)


class Row(NamedTuple):
    code: Code
    who: str
    text: str


def rows() -> list[Row]:
    """Every request code once, by number."""
    found = {row.code: row for row in (*_pushed(), *_refused())}
    for row in _answered():
        known = found.get(row.code)
        who = f"{known.who}, {row.who}" if known is not None else row.who
        found[row.code] = row._replace(who=who)
    return [found[code] for code in sorted(found)]


def page() -> str:
    """The whole page."""
    lines = "".join(
        f"| {row.code.value} | `{row.code.name}` | {row.who} | {row.text} |\n" for row in rows()
    )
    return f"{PREFACE}\n| code | name | who | what |\n|---|---|---|---|\n{lines}"


class _Methods:
    """Stands for a handler: only the docstrings of its methods are wanted.

    What a handler wraps when it is built is found under its private name.
    """

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name, None) or getattr(self._kind, f"_{name}")


def _pushed() -> Iterator[Row]:
    for code, text in PUSHED.items():
        yield Row(code, "clients", text)


def _refused() -> Iterator[Row]:
    for code, reason in REFUSED.items():
        yield Row(code, "refused", reason)


def _answered() -> Iterator[Row]:
    stand_ins = {name: _Methods(kind) for name, kind in get_type_hints(Handlers).items()}
    broker = broker_routes(SimpleNamespace(**stand_ins))  # type: ignore[arg-type]
    for code, handler in {**broker.hot, **broker.slow}.items():
        if code not in REFUSED:
            yield Row(Code(code), "broker", _meaning(handler))
    server = NameServerHandlers(*[None] * 5).routes()  # type: ignore[arg-type]
    for code, answer in {**server.hot, **server.slow}.items():
        yield Row(Code(code), "name server", _meaning(answer))


def _meaning(handler: Callable[..., Any]) -> str:
    """The first paragraph of a docstring, without the codes in front of it."""
    text = getdoc(handler) or ""
    found = _TEXT.match(text.partition("\n\n")[0])
    return " ".join(found[1].split()).rstrip(".") if found else ""


if __name__ == "__main__":
    print(page(), end="")
