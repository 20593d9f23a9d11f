"""The command line of mqadmin is read as RocketMQ reads it."""

import pytest

from gantrymq.cli.mqadmin.command import AdminCommand, AdminOption, Invocation, WrongOption
from gantrymq.cli.mqadmin.parser import parse
from gantrymq.cli.mqadmin.values import address, moment, number, permission, truth, whole


async def nothing(call: Invocation) -> None:
    """Does nothing."""


COMMAND = AdminCommand(
    "topicStatus",
    "Examine topic Status info.",
    (
        AdminOption("t", "topic", "", required=True),
        AdminOption("b", "brokerAddr", "", read=address),
        AdminOption("c", "clusterName", ""),
        AdminOption("l", "list", "", is_flag=True),
    ),
    nothing,
    one_of=("brokerAddr", "clusterName"),
)


@pytest.mark.parametrize(
    "words",
    ["-t orders", "-torders", "--topic orders", "--topic=orders", "-topic orders", "--top orders"],
)
def test_every_way_to_write_an_option(words: str) -> None:
    """
    Short, joined, long, with one dash, and cut short.
    """
    assert "orders" == parse(COMMAND, [*words.split(), "-c", "DefaultCluster"])["topic"]


def test_a_broker_without_a_port_has_rocketmqs() -> None:
    """
    The one of its broker, 10911.
    """
    assert "10.0.0.2:10911" == parse(COMMAND, ["-t", "x", "-b", "10.0.0.2"])["brokerAddr"]


def test_one_of_two_options_is_needed() -> None:
    """
    The error names both, and how to see the help.
    """
    with pytest.raises(WrongOption, match="-b or -c is needed; see 'mqadmin help topicStatus'"):
        parse(COMMAND, ["-t", "x"])


@pytest.mark.parametrize(
    ("read", "good", "value"),
    [
        (whole, "12", 12),
        (number, "-3", -3),
        (truth, "TRUE", True),
        (truth, "false", False),
        (permission, "6", 6),
        (moment, "1577836800000", 1_577_836_800_000),
    ],
)
def test_values_are_read(read: object, good: str, value: object) -> None:
    """
    As RocketMQ writes them.
    """
    assert value == read(good)  # type: ignore[operator]


def test_rocketmqs_own_form_of_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    yyyy-MM-dd#HH:mm:ss:SSS, in the zone of this machine.
    """
    monkeypatch.setenv("TZ", "UTC")

    assert 1_577_836_800_250 == moment("2020-01-01#00:00:00:250")


@pytest.mark.parametrize(
    ("read", "bad"),
    [(whole, "-1"), (whole, "x"), (truth, "yes"), (permission, "7"), (moment, "someday")],
)
def test_bad_values_are_refused(read: object, bad: str) -> None:
    """
    With the value in the error.
    """
    with pytest.raises(ValueError, match=bad):
        read(bad)  # type: ignore[operator]
