"""Everything that was said to RocketMQ is said to us: we answer as one of its releases did."""

import ast
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from player import Step, play_all
from record import AREAS
from users_script import CHANGES, DECISIONS

from gantrymq.broker import routes as broker_routes
from gantrymq.broker.settings.rocketmq_keys import IGNORED_KEYS, STATED
from gantrymq.nameserver.handlers import NameServerHandlers
from gantrymq.protocol.codes import RequestCode

OPTIONAL_FIELDS = {"groupSysFlag", "topicSysFlag", "sqlOperators", "recallState"}
OPTIONAL_PROPERTIES = {
    "MSG_REGION", "TRACE_ON", "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID",
}  # fmt: skip
"""What 5.x or we ourselves add to answers and to stored messages, and clients do without."""

NOT_SENT = {26: IGNORED_KEYS - STATED.keys()}
"""What we leave out of answers that are tables, by code: settings that have no meaning here."""

RECORDINGS = Path(__file__).resolve().parent / "recordings"


@functools.cache
def recorded(area: str) -> list[Step]:
    """The steps of one recording, with the answers of both releases."""
    steps: list[Step] = json.loads((RECORDINGS / f"{area}.json").read_text())
    return steps


@functools.cache
def _played(area: str, addresses: tuple[str, str]) -> list[dict[str, Any] | None] | Exception:
    try:
        return play_all(recorded(area), *addresses)
    except Exception as error:
        return error


def played(area: str, addresses: tuple[str, str]) -> list[dict[str, Any] | None]:
    """Our answers to one recording; it is played once, each step is then judged by its own test.

    A play that breaks off breaks off once, not once a step.
    """
    outcome = _played(area, addresses)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


STEPS = [
    pytest.param(area, at, id=f"{area}: {step['name']}")
    for area in AREAS
    for at, step in enumerate(recorded(area))
]
"""In the order of the recording: queue offsets count what was said before."""


@pytest.mark.parametrize("area, at", STEPS)
def test_we_answer_as_a_release_of_rocketmq_did(
    area: str, at: int, addresses: tuple[str, str]
) -> None:
    """
    Code, header fields and body equal the normalised answer of at least one release. A step
    where both releases do worse than they should names the better answer, and why.
    """
    step, ours = recorded(area)[at], played(area, addresses)[at]
    accepted = step["answers"]
    if ours is not None and ours.get("code") in step.get("better", {}).get("codes", ()):
        return
    if step.get("names"):
        assert ours is not None
        assert [] == _missing(ours, step), "names that a release sends"
        return
    good = [version for version, theirs in accepted.items() if _agrees(ours, theirs, step)]
    assert good, f"ours:\n{_text(ours)}\nRocketMQ's:\n{_text(accepted)}"


def test_every_code_that_we_answer_has_a_dialogue() -> None:
    """
    A code without a recording of the real thing is not done.
    """
    steps = [step for area in AREAS for step in recorded(area)]
    said = {step["request"]["code"] for step in steps if "request" in step}
    said |= {request["code"] for request in (*CHANGES, *DECISIONS)}
    table = ast.parse(Path(broker_routes.__file__).read_text())
    answered = {
        RequestCode[node.attr].value
        for node in ast.walk(table)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Code"
    }
    routes = NameServerHandlers(*[None] * 5).routes()  # type: ignore[arg-type]
    answered |= {*routes.hot, *routes.slow}

    assert set() == answered - said


def _missing(ours: Mapping[str, Any], step: Step) -> list[str]:
    """Names that some release sends and we do not. Tools of each want theirs, so all count."""
    theirs = {name for found in step["answers"].values() for name in found["body"]["names"]}
    known = {*ours["body"]["names"], *NOT_SENT.get(step["request"]["code"], ())}
    return sorted(theirs - known)


def _agrees(ours: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None, step: Step) -> bool:
    """Texts for people may differ; where only the shape counts, more entries may be there."""
    if ours is None or theirs is None:
        return ours is theirs
    mine, other = (_essential(answer) for answer in (ours, theirs))
    if step.get("shape") and "body" in mine and "body" in other:
        (a,), (b,) = mine.pop("body")["json"].values(), other.pop("body")["json"].values()
        return bool(a.items() >= b.items()) and mine == other
    return mine == other


def _essential(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer without texts for people and without what 5.x merely adds."""
    fields = answer.get("ext", {}).items()
    ext = {name: value for name, value in fields if name not in OPTIONAL_FIELDS}
    found = {**answer, "remark": None, "ext": ext}
    messages = answer.get("body", {}).get("messages")
    if messages is not None:
        found["body"] = {"messages": [_plain(message) for message in messages]}
    return found


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in message["properties"].items() if k not in OPTIONAL_PROPERTIES}
    if kept.get("UNIQ_KEY") == "<id>":  # 5.x gives one to messages that came without
        del kept["UNIQ_KEY"]
    return {**message, "properties": kept}


def _text(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)
