"""A page or an act, declared once, and what both see of a request.

TABLE = PageTable("topics")

@TABLE.page("/c/{cluster}/topics")
async def topics(view: View) -> Response:
    found = await list_topics(view.ask, view.query(TopicsQuestion))
    return view.show("topics.html", found=found)

@TABLE.act("/c/{cluster}/topics/{topic}/delete")
async def delete(view: View) -> str:
    return (await delete_topic(view.ask, await view.form(TopicName))).text
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from gantrymq.base.errors import GantryError
from gantrymq.console.access.user import LOCAL_USER
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Question
from gantrymq.console.api.http import convert, read_body
from gantrymq.console.errors import BadInput, status_of
from gantrymq.console.pages.rendering import render, segment
from gantrymq.console.texts import LANGUAGES, Texts

SECTIONS: Final = (
    "overview",
    "topics",
    "messages",
    "groups",
    "letters",
    "waiting",
    "alarms",
    "data",
    "rights",
    "access",
)
"""The pages of the navigation, in this order; each is at /c/CLUSTER/SECTION."""

ABOVE: Final = {"HX-Retarget": "#said", "HX-Reswap": "innerHTML", "HX-Reselect": ".said"}
"""Puts an answer above the page, wherever it was asked for."""

Asker = Callable[[Request], Ask]
Q = TypeVar("Q", bound=Question)


class View:
    """A request to a page, and what it needs to answer."""

    def __init__(self, request: Request, ask: Ask, section: str) -> None:
        self.request, self.ask, self.section = request, ask, section
        self.texts = Texts(language_of(request))
        self.cluster: str = request.path_params.get("cluster", "")

    def query(self, kind: type[Q], /, **others: object) -> Q:
        """The question in the address of the page. An empty field of a form is as good as none."""
        given = {key: value for key, value in self.request.query_params.items() if value}
        return convert(self._path | given | others, kind, is_text=True)

    async def form(self, kind: type[Q], *, lists: Collection[str] = (), **others: object) -> Q:
        """The question in a form. An empty field is as good as none; in fields of `lists` several
        words stand with spaces or commas between."""
        fields = await self.fields()
        words = {
            name: str(fields[name]).replace(",", " ").split() for name in lists if name in fields
        }
        return convert(self._path | fields | words | others, kind, is_text=True)

    async def fields(self) -> dict[str, Any]:
        """The fields of a form that are filled in; one that is there twice is a list."""
        found: dict[str, Any] = {}
        try:
            pairs = parse_qsl((await read_body(self.request)).decode(), max_num_fields=10_000)
        except ValueError:
            raise BadInput("the form cannot be read") from None
        for key, value in pairs:
            before = found.get(key)
            if before is None:
                found[key] = value
            else:
                found[key] = [*before, value] if isinstance(before, list) else [before, value]
        return found

    @property
    def _path(self) -> dict[str, Any]:
        return dict(self.request.path_params)

    def show(
        self, template: str, status: HTTPStatus = HTTPStatus.OK, /, **values: object
    ) -> Response:
        """The page from a template."""
        return HTMLResponse(render(template, self._common() | values), status)

    def _common(self) -> dict[str, Any]:
        parts = self.ask.parts
        return {
            "t": self.texts,
            "view": self,
            "user": self.ask.user,
            "cluster": self.cluster,
            "clusters": parts.clusters.names,
            "section": self.section,
            "sections": SECTIONS,
            "languages": LANGUAGES,
            "here": str(self.request.url.path),
            "address": _address(self.request),
            "may_change": self.ask.may_change,
            "is_local": self.ask.user is LOCAL_USER,
        }

    def trouble(self, error: GantryError) -> Response:
        """The page that says why there is no other.

        A part of a page stays as it is, so that it can ask again; the sentence stands above.
        """
        if "hx-request" in self.request.headers:
            body = render("said.html", {"text": self.told(error), "kind": "error part"})
            return HTMLResponse(body, status_of(error), ABOVE)
        return self.show("error.html", status_of(error), text=self.told(error))

    def told(self, said: object) -> str:
        """A sentence of the API or an error, in the language of the page."""
        return self.texts.told(str(said))

    def said(self, text: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
        """The sentence that an act answers with; the page shows it and asks for its parts again."""
        kind = "ok" if status == HTTPStatus.OK else "error"
        body = render("said.html", {"text": self.told(text), "kind": kind})
        headers = {"HX-Trigger": "changed"} if status == HTTPStatus.OK else {}
        return HTMLResponse(body, status, headers)


def language_of(request: Request) -> str:
    """The language that was chosen, or the browser's."""
    chosen = request.cookies.get("language")
    if chosen in LANGUAGES:
        return str(chosen)
    return "zh" if request.headers.get("accept-language", "").startswith("zh") else "en"


def _address(request: Request) -> str:
    """The path and query of a page, by which its live parts ask for themselves again."""
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")


Show = Callable[[View], Awaitable[Response]]
Act = Callable[[View], Awaitable[str]]


@dataclass(frozen=True)
class ConsolePage:
    """A path and what answers it."""

    section: str
    path: str
    show: Show
    method: str = "GET"

    def route(self, ask_of: Asker) -> Route:
        """The route of the page; `ask_of` says who asks."""

        async def serve(request: Request) -> Response:
            view = View(request, ask_of(request), self.section)
            try:
                return await self.show(view)
            except GantryError as error:
                return view.trouble(error)

        return Route(self.path, serve, methods=[self.method])


class PageTable:
    """The pages and acts of one section."""

    def __init__(self, section: str) -> None:
        self._section = section
        self.pages: list[ConsolePage] = []

    def page(self, path: str) -> Callable[[Show], Show]:
        """Declare a page."""

        def declare(show: Show) -> Show:
            self.pages.append(ConsolePage(self._section, path, show))
            return show

        return declare

    def act(self, path: str, leads_to: str = "") -> Callable[[Act], Act]:
        """Declare what a form or button does; the function returns a sentence.

        `leads_to` is a page of the cluster to go to when it is done: that of a thing that was
        deleted would only say that it is gone.
        """

        def declare(act: Act) -> Act:
            async def show(view: View) -> Response:
                try:
                    answer = view.said(await act(view))
                    if leads_to:
                        del answer.headers["HX-Trigger"]  # the parts of this page would ask in vain
                        answer.headers["HX-Redirect"] = f"/c/{segment(view.cluster)}/{leads_to}"
                    return answer
                except GantryError as error:
                    return view.said(str(error), status_of(error))

            self.pages.append(ConsolePage(self._section, path, show, "POST"))
            return act

        return declare
