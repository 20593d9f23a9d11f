"""A RocketMQ 5.3.3 broker with users and policies was asked all this: we decide as it did."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from gantry_up import running
from record_users import RECORDING, play
from users_script import AWAY, CHANGES, CLUSTER, DECISIONS, SETTINGS, Request

RECORDED: dict[str, list[Any]] = json.loads(RECORDING.read_text())
NO_PERMISSION = 16
SUCCESS_REMARK = "not set any response code"
"""What 5.3.3 forgets to take out of answers that succeed."""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """What our broker answers, on the same settings."""
    folder = tmp_path_factory.mktemp("users")
    config = folder / "broker.conf"
    config.write_text("".join(f"{key}={value}\n" for key, value in SETTINGS.items()))
    with running(folder / "data", ["--config", str(config)]) as (_, broker):
        yield play(broker)


@dataclass(frozen=True)
class Difference:
    """Requests that we decide in another way on purpose, and how."""

    why: str
    meant: Callable[[Request], bool]
    refused: Callable[[Request], str | None]
    """What our refusal names, or None if we let the request through."""


def _names(*starts: str) -> Callable[[Request], bool]:
    return lambda request: request["name"].startswith(starts)


def _of(user: str, source: str = "127.0.0.1") -> Callable[[Request], bool]:
    return lambda request: request["user"] == user and request["source"] == source


def _retry_group(request: Request) -> str | None:
    group = request["ext"]["b"].removeprefix("%RETRY%")
    may = ("subscriber", "billing"), ("anything-but", "others")
    return None if (request["user"], group) in may else f"Group:{group}"


DIFFERENCES = [
    Difference(
        "5.3.3 asks about the group that a sender says it is, we about that of the retry topic",
        _names("SEND_MESSAGE_V2 to %RETRY%"),
        _retry_group,
    ),
    Difference(
        "5.3.3 lets every user change settings and groups, as any that may update the cluster",
        _names("change a setting", "make group"),
        lambda request: f"Cluster:{CLUSTER}",
    ),
    Difference(
        "5.3.3 asks nothing about LITE_PULL_MESSAGE, we ask as about PULL_MESSAGE",
        _names("LITE_PULL"),
        lambda request: (
            "Group:billing" if request["user"] in ("all-topics", "anything-but") else "Topic:orders"
        ),
    ),
    Difference(
        "a message that is sent back by its place in the log needs the right to its topic",
        _names("send back"),
        lambda request: "Topic:orders",
    ),
    Difference(
        "5.3.3 takes the shortest prefix, later releases and we the longest",
        _of("long-prefix-denied"),
        lambda request: "Topic:orders",
    ),
    Difference(
        "the same, the other way round",
        _of("long-prefix-allowed"),
        lambda request: None,
    ),
    Difference(
        "5.3.3 takes a prefix before a name if it was written later, later releases do not",
        _of("name-before-prefix"),
        lambda request: None,
    ),
    Difference(
        "5.3.3 takes Topic:* before a name if it was written later, later releases do not",
        _of("not-from-away", AWAY),
        lambda request: "Topic:orders",
    ),
]


def test_decisions(ours: dict[str, list[Any]]) -> None:
    """
    The same requests are let through, the others are refused with the same code and words. Where
    we differ, it is for one of the reasons above, and every reason is needed.
    """
    used, wrong = set(), []
    for request, theirs, mine in zip(
        DECISIONS, RECORDED["decisions"], ours["decisions"], strict=True
    ):
        if theirs == mine or NO_PERMISSION not in (theirs[0], mine[0]):
            continue
        reason = next((each for each in DIFFERENCES if each.meant(request)), None)
        if reason is None or not _is_as_meant(reason.refused(request), mine):
            wrong.append((request["user"], request["source"], request["name"], theirs, mine))
        else:
            used.add(reason.why)

    assert [] == wrong
    assert {each.why for each in DIFFERENCES} == used


def _is_as_meant(named: str | None, mine: list[Any]) -> bool:
    if named is None:
        return bool(mine[0] != NO_PERMISSION)
    return bool(mine[0] == NO_PERMISSION and f"to access {named}" in mine[1])


def test_there_are_enough_of_them() -> None:
    """
    Both kinds of decision are recorded a few hundred times.
    """
    codes = [code for code, _ in RECORDED["decisions"]]

    assert 900 < codes.count(NO_PERMISSION) < len(codes) - 700


@pytest.mark.parametrize("at", range(len(CHANGES)), ids=lambda at: f"{at} {CHANGES[at]['name']}")
def test_users_and_policies_change_as_there(at: int, ours: dict[str, list[Any]]) -> None:
    """
    Code, text and body of the answer are those of 5.3.3; its errors in Java have our words.
    """
    code, remark, body = RECORDED["changes"][at]
    mine = ours["changes"][at]

    assert [code, body] == [mine[0], mine[2]]
    if code == 0:
        assert remark == SUCCESS_REMARK
        assert mine[1] is None
    elif "Exception: " in remark:
        assert mine[1] == remark.partition("Exception: ")[2].partition(", ")[0]
    else:
        assert mine[1] == remark
