"""Every page of every subject."""

from typing import Final

from gantrymq.console.pages import (
    access,
    account_rights,
    alarms,
    brokers,
    common,
    data,
    groups,
    letters,
    messages,
    overview,
    rights,
    samples,
    topics,
    waiting,
)
from gantrymq.console.pages.page import ConsolePage

PAGES: Final[tuple[ConsolePage, ...]] = tuple(
    page
    for subject in (
        common,
        overview,
        brokers,
        samples,
        topics,
        groups,
        alarms,
        data,
        access,
        messages,
        letters,
        waiting,
        rights,
        account_rights,
    )
    for page in subject.TABLE.pages
)
