"""Fields of forms and addresses that pages read in the same way, and the parts of a list."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response

from gantrymq.base.errors import GantryError
from gantrymq.console.api.endpoint import Question
from gantrymq.console.api.http import convert
from gantrymq.console.errors import BadInput, status_of
from gantrymq.console.pages.page import View
from gantrymq.console.pages.rendering import render

Q = TypeVar("Q", bound=Question)
Read = Callable[[Any], object]


async def form_with(view: View, kind: type[Q], **readers: Read) -> Q:
    """The question in a form, some of whose fields are read by these functions."""
    fields = await view.fields()
    for name, read in readers.items():
        fields[name] = read(fields.get(name))
    return convert(dict(view.request.path_params) | fields, kind, is_text=True)


def several(value: str | list[str] | None) -> list[str]:
    """A field that may be there several times, as check boxes are."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def words(value: str | None) -> list[str]:
    """A field with words between spaces."""
    return (value or "").split()


def pairs(value: str | None) -> dict[str, str]:
    """A field with NAME=VALUE on each line."""
    found = {}
    for line in (value or "").splitlines():
        if line.strip():
            name, mark, text = line.partition("=")
            if not mark or not name.strip():
                raise BadInput(f"{line.strip()!r} is not NAME=VALUE")
            found[name.strip()] = text.strip()
    return found


def edited(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the form of a message to send again changes; without a body the stored one stays."""
    if "isEdited" not in fields:
        return {}
    found: dict[str, Any] = {
        "tags": fields.get("tags"),
        "keys": words(fields.get("keys")),
        "properties": pairs(fields.get("properties")),
    }
    if "body" in fields:
        found["body"] = str(fields["body"]).replace("\r\n", "\n")
    return found


def checked(value: str | None) -> bool:
    """A check box, which is not sent when it is not checked."""
    return value is not None


def no_plan(view: View, error: GantryError) -> Response:
    """Why there is no preview, for the place beside the form that asked for it."""
    said = render("said.html", {"text": view.told(error), "kind": "error"})
    return HTMLResponse(said, status_of(error))


@dataclass(frozen=True)
class ListPart:
    """Which part of a list a page shows, and where the others are."""

    view: View
    offset: int
    limit: int
    shown: int
    count: int

    @property
    def first(self) -> int:
        """The number of the first row, from 1 on."""
        return self.offset + 1

    @property
    def next(self) -> int | None:
        after = self.offset + self.shown
        return after if after < self.count else None

    @property
    def previous(self) -> int | None:
        return max(0, self.offset - self.limit) if self.offset else None

    def address(self, offset: int) -> str:
        """The same page at another offset."""
        query = dict(self.view.request.query_params) | {"offset": str(offset)}
        return f"?{urlencode(query)}"

    def at(self, **changes: str) -> str:
        """The same list with another choice, from its begin."""
        query = dict(self.view.request.query_params) | changes
        query.pop("offset", None)
        return f"?{urlencode({key: value for key, value in query.items() if value})}"
