"""Every page of every subject."""

from typing import Final

from gantrymq.console.pages import access, common, data, groups, messages, overview, topics
from gantrymq.console.pages.page import Page

PAGES: Final[tuple[Page, ...]] = tuple(
    page
    for subject in (common, overview, topics, groups, data, access, messages)
    for page in subject.TABLE.pages
)
