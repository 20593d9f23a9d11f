"""Sentences that the admin client writes, in Chinese.

The admin client writes English: what it finds also goes to terminals, logs and webhooks. A page in
Chinese looks a sentence up by its English pattern; what no pattern fits stays English.
"""

from gantrymq.console.texts.sentences import findings, histories, progress
from gantrymq.console.texts.sentences.sentence_table import SentenceTable

CHINESE = SentenceTable(findings.SENTENCES, progress.SENTENCES, histories.SENTENCES)

__all__ = ["CHINESE", "SentenceTable"]
