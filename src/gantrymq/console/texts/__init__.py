"""Every word of the pages, in English and Chinese: a table a subject, joined to one here."""

from collections.abc import Mapping
from typing import Final

from gantrymq.console.texts import (
    account,
    brokers,
    charts,
    common,
    data,
    groups,
    history,
    letters,
    messages,
    overview,
    rights,
    topics,
    waiting,
)
from gantrymq.console.texts.sentences import CHINESE

LANGUAGES: Final = {"en": "English", "zh": "中文"}
TABLES: Final[tuple[Mapping[str, tuple[str, str]], ...]] = (
    account.TEXTS,
    brokers.TEXTS,
    charts.TEXTS,
    common.TEXTS,
    data.TEXTS,
    groups.TEXTS,
    history.TEXTS,
    overview.TEXTS,
    rights.TEXTS,
    topics.TEXTS,
    messages.TEXTS,
    letters.TEXTS,
    waiting.TEXTS,
)
TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    key: text for table in TABLES for key, text in table.items()
}
"""Key to English and Chinese. A key begins with its page: `overview.members`."""


class Texts:
    """The words of one language."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else "en"
        self._column = list(LANGUAGES).index(self.language)

    def __call__(self, key: str, /, **values: object) -> str:
        """The text of a key, with its values filled in."""
        text = TEXTS[key][self._column]
        return text.format(**values) if values else text

    def told(self, sentence: str) -> str:
        """A sentence of the admin client in this language; in English if nobody translated it."""
        return CHINESE(sentence) if self.language == "zh" else sentence

    def word(self, subject: str, word: str) -> str:
        """The text of a word that comes from elsewhere; the word itself if there is none."""
        found = TEXTS.get(f"{subject}.{word}")
        return word if found is None else found[self._column]
