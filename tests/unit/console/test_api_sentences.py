"""What the API says, in Chinese: a sentence without a translation fails here."""

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import gantrymq.console
from gantrymq.console.texts import Texts

CONSOLE: Final = Path(gantrymq.console.__file__).parent
SOURCES: Final = (
    *sorted((CONSOLE / "api").rglob("*.py")),
    *sorted((CONSOLE / "access").glob("*.py")),
    *sorted((CONSOLE / "pages").glob("*.py")),
    CONSOLE / "app.py", CONSOLE / "clusters.py", CONSOLE / "jobs.py",
)  # fmt: skip
UNSHOWN: Final = ("openapi.py", "users_file.py", "rendering.py", "history_picture.py")
"""Modules whose texts are for programs, for the command line, or no sentences."""
PARTS: Final = {
    # of sentences below, which are tried whole
    "consumed it", "did not take it", "was done", "is recalled", "no other", "would be moved",
    "was asked for; the broker does not tell more", "it was removed", "all chosen letters",
    " (dry run)", "policy entry", "policy entries",
    # names of things
    "rolled back", "body form", "body bytes", "cluster user", "error part", "GantryMQ console",
    "the sessions of the console",
    "7: 7 policy entries", "dead letters of 7", " after 7 ms", "(7 in all)", "... (7 in all)",
    # headers, and a command
    'attachment; filename="7"', 'Basic realm="gantry console", charset="UTF-8"',
    "from gantrymq.cli.pipeline.group import pipeline; pipeline(prog_name='gantry pipeline')",
    # before somebody logs in, to programs
    "nothing is here\n",
    # what brokers answer to a wrong key
    "no acl config for", "check signature failed", "no accesskey is configured",
    "username cannot be null", "is not found", "is disabled",
}  # fmt: skip
POLICY: Final = "default-src"
"""Of a Content-Security-Policy."""
SAMPLES: Final = {
    "done": "consumed it",
    "time": " after 7 ms",
    "said": "is recalled",
    "how": "was done",
    "what": "7 letters",
    "untouched(wanted.user, members)": "",
    "loss.text": "the user on 7, with 7 policy entries",
    "HOW_TO_TURN_ON": "start a new cluster",
    "job.state.value": "stopped",
    "self._said(job)": "going on",
    "found.why": "withheld: the body is empty",
    "folder.name.removesuffix('s')": "archive",
    "wanted.kind.value": "path",
    "count": "7 policy entries",
}
"""For what is neither a name nor a number."""
OF_GROUPS: Final = {"done": "paused"}
OF_RESETS: Final = {"done": "would be moved"}
CJK: Final = re.compile(r"[\u4e00-\u9fff]")
SECONDS_MAX: Final = 0.5
ENGLISH: Final = re.compile(r"\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b")


def filled(node: ast.expr, samples: dict[str, str]) -> str | None:
    """A text of the source with something in its holes; None if it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = []
    for each in node.values:
        if isinstance(each, ast.Constant):
            parts.append(str(each.value))
            continue
        assert isinstance(each, ast.FormattedValue)
        value, source = each.value, ast.unparse(each.value)
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "counted":
            parts.append("7 " + ast.literal_eval(value.args[1]) + "s")
        else:
            parts.append(samples.get(source, "7"))
    return "".join(parts)


def texts_in(node: ast.AST, samples: dict[str, str]) -> Iterator[tuple[int, str]]:
    """The texts of a part of a module, but for docstrings and what goes to the log."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Call) and ast.unparse(child.func).startswith("log."):
            continue
        text = filled(child, samples) if isinstance(child, ast.expr) else None
        if text is None:
            yield from texts_in(child, samples)
        else:
            yield child.lineno, text


def sentences() -> Iterator[tuple[str, str]]:
    for path in SOURCES:
        if path.name in UNSHOWN:
            continue
        own = {"groups.py": OF_GROUPS, "group_progress.py": OF_RESETS}.get(path.name, {})
        for line, text in texts_in(ast.parse(path.read_text()), SAMPLES | own):
            is_sentence = len(re.findall(r"[A-Za-z]{2,}", text)) > 1 and " " in text.strip()
            if is_sentence and text not in PARTS and POLICY not in text:
                yield f"{path.relative_to(CONSOLE)}:{line}", text


@pytest.mark.parametrize("sentence", [pytest.param(text, id=place) for place, text in sentences()])
def test_what_the_api_says_is_told_in_chinese(sentence: str) -> None:
    """Whoever writes a new one translates it, in a module of console/texts/sentences."""
    told = Texts("zh").told(sentence)
    assert CJK.search(told), sentence
    assert not ENGLISH.search(re.sub("`.*?`", "", told)), told
    assert Texts("en").told(sentence) == sentence


SAID: Final = [
    "group billing is paused on a, b; members keep running and ask in vain, until the group is "
    "resumed",
    "send 1 letter of billing again: begun",
    "AC12: 127.0.0.1:10911 answered code 13: locked",
    "3 failed in a row; 0 sent again, 0 skipped because they were before, 3 failed, 9 left "
    "untouched",
    "user shop is changed on broker-a; broker-b has no such user; this console asks with its old "
    "password: give it the new one",
    "user shop is to be created: done on broker-a; failed on broker-b: 127.0.0.1:1 did not answer "
    "in time. It can be repeated as a whole",
    "no name server answers: connect to 127.0.0.1:1 failed: [Errno 111] refused",
    "10.0.0.1@1234#5 consumed it after 3 ms: CR_SUCCESS",
    "10.0.0.1@1234#5 did not take it: CR_LATER; ValueError: no such customer",
    "no route for topic orders: no broker; create the topic first (Admin.create_topic, mqadmin "
    "updateTopic) or let the brokers create it on first send (autoCreateTopicEnable)",
    "withheld: the body has more than 10,000 values",
    "topic orders is deleted with all that broker-a stored in it, read by billing",
    "Expected `int`, got `str` - at `$.queueId`",
    "orders@broker-a:0: 7 to 19 are not there any more",
    "not read yet in the queues from 2 on: billing: 5. Write queues are down already; run it again "
    "when the groups have caught up",
]
WORDS: Final = re.compile(r"ValueError: no such customer|no broker|mqadmin updateTopic")


@pytest.mark.parametrize("sentence", SAID)
def test_sentences_of_several_parts(sentence: str) -> None:
    """Each part is told; names, words of RocketMQ and what programs said stay as they are."""
    told = Texts("zh").told(sentence)
    assert CJK.search(told)
    assert not re.search(r"[a-z]{2,} [a-z]{2,}", WORDS.sub("", told)), told


@pytest.mark.parametrize(
    "sentence",
    ["a" * 100_000, ": ; " * 140, " of , held by : @" * 35, "; done on ; failed on : " * 25],
)
def test_whatever_a_server_says_costs_little(sentence: str) -> None:
    """Patterns with several names try many ways, so long sentences stay as they are."""
    began = time.process_time()
    Texts("zh").told(sentence)
    assert time.process_time() - began < SECONDS_MAX
