"""docs/requests.md says who answers each request, and which are refused and why."""

from pathlib import Path

from gantrymq.cli.pages.requests import PUSHED, page, rows
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.refusals import REFUSED

ROOT = Path(__file__).parents[3]
WORDS_MIN = 2


def test_the_page_is_printed_from_the_code() -> None:
    """
    After a change: `python -m gantrymq.cli.pages.requests > docs/requests.md`.
    """
    assert (ROOT / "docs" / "requests.md").read_text() == page()


def test_every_request_stands_there_once_with_a_meaning() -> None:
    """
    The meaning is the docstring of the handler, the reason of the refusal, or what clients do.
    """
    found = rows()

    assert sorted(RequestCode) == [row.code for row in found]
    assert [] == [row for row in found if len(row.text.split()) < WORDS_MIN]
    assert {"refused"} == {row.who for row in found if row.code in REFUSED}
    assert {"clients"} == {row.who for row in found if row.code in PUSHED}


def test_a_refusal_is_one_sentence_that_says_what_is_missing() -> None:
    """
    It begins in the middle of a sentence, as remarks do, and ends without a full stop.
    """
    for reason in REFUSED.values():
        assert 30 < len(reason) < 200
        assert reason[0].islower()
        assert not reason.endswith(".")
        assert "\n" not in reason
