"""The folders and names of archives and reports.

LAKE/archives/NAME is a table, LAKE/reports/NAME a report. Names come from the browser, so they
have no slash and no leading dot, and no path leaves its folder.
"""

import re
from pathlib import Path
from typing import Final

from gantrymq.console.access.user import Role
from gantrymq.console.api.ask import Ask
from gantrymq.console.errors import BadInput, Forbidden, NotThere

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def archives_of(ask: Ask) -> Path:
    """The folder of all archives."""
    return ask.parts.settings.lake_path / "archives"


def reports_of(ask: Ask) -> Path:
    """The folder of all reports."""
    return ask.parts.settings.lake_path / "reports"


def checked(name: str) -> str:
    """A name that may be a folder's."""
    if not NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} is no name: letters, digits, dot, dash and underscore, 64 at most"
        )
    return name


def existing(folder: Path, name: str) -> Path:
    """The folder of this name, which has to be there."""
    found = folder / checked(name)
    if not found.is_dir():
        raise NotThere(f"no {folder.name.removesuffix('s')} {name!r} in {folder}")
    return found


def check_right(ask: Ask) -> None:
    """Archives and reports are outside of a cluster's access control: not for keys of it."""
    if ask.user.role is Role.CLUSTER_USER:
        raise Forbidden(
            f"{ask.user.name} is no admin of this console: archives and reports hold messages of "
            "topics that a key may not read"
        )
