"""Where a page of this console may lead to: a place of the console itself. Pure."""

from urllib.parse import urlsplit


def own_place(place: str) -> str:
    """A path of this console; the first page instead of any other.

    Browsers read `//host`, and a backslash in it, as the address of another site.
    """
    try:
        is_elsewhere = bool(urlsplit(place).netloc)
    except ValueError:
        return "/"
    is_own = place.startswith("/") and place[1:2] not in ("/", "\\") and not is_elsewhere
    return place if is_own and place.isprintable() else "/"
