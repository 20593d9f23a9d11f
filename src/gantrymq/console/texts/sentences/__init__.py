"""Sentences that the admin client and the API write, in Chinese.

Both write English: what they say also goes to terminals, logs, webhooks and programs. A page in
Chinese looks a sentence up by its English pattern; what no pattern fits stays English.
"""

from gantrymq.console.texts.sentences import (
    acts,
    bodies,
    findings,
    histories,
    jobs,
    progress,
    refusals,
    servers,
)
from gantrymq.console.texts.sentences.sentence_table import SentenceTable

CHINESE = SentenceTable(
    # The patterns of the last but one end with those that fit most.
    acts.SENTENCES, refusals.SENTENCES, bodies.SENTENCES, jobs.SENTENCES, servers.SENTENCES,
    findings.SENTENCES, progress.SENTENCES, histories.SENTENCES,
)  # fmt: skip

__all__ = ["CHINESE", "SentenceTable"]
