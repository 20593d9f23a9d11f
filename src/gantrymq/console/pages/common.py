"""The entry, and the choice of a language."""

from urllib.parse import urlsplit

from starlette.responses import RedirectResponse, Response

from gantrymq.console.errors import NotThere
from gantrymq.console.pages.own_place import own_place
from gantrymq.console.pages.page import PageTable, View
from gantrymq.console.pages.rendering import segment
from gantrymq.console.texts import LANGUAGES

TABLE = PageTable("")
LANGUAGE_SECONDS = 365 * 86_400


@TABLE.page("/")
async def entry(view: View) -> Response:
    """The overview of the first cluster."""
    first = view.ask.parts.clusters.names[0]
    return RedirectResponse(f"/c/{segment(first)}/overview", 303)


@TABLE.page("/c/{cluster}")
async def cluster(view: View) -> Response:
    return RedirectResponse(f"/c/{segment(view.cluster)}/overview", 303)


@TABLE.page("/language/{code}")
async def language(view: View) -> Response:
    """Remember a language, and go back to the page on which it was chosen."""
    code = view.request.path_params["code"]
    if code not in LANGUAGES:
        raise NotThere(f"no language {code!r}; there are {', '.join(LANGUAGES)}")
    answer = RedirectResponse(_back(view.request.headers.get("referer", "/")), 303)
    answer.set_cookie("language", code, LANGUAGE_SECONDS, samesite="strict", httponly=True)
    return answer


def _back(referer: str) -> str:
    """The page of this console that an address names; the first one for any other."""
    try:
        return own_place(urlsplit(referer).path or "/")
    except ValueError:
        return "/"
