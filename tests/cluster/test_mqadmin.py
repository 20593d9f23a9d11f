"""Every command of mqadmin against a running cluster, and what all of them have in common."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mqadminkit import Case, Place, Scene, cases, missing_line, white_listed

from gantrymq.cli.mqadmin.commands import refused
from gantrymq.cli.mqadmin.main import run
from gantrymq.cli.mqadmin.table import COMMANDS
from gantrymq.testing.threaded import GantryCluster


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A cluster with a topic, three messages, a producer and a consumer."""
    rules = white_listed(tmp_path_factory.mktemp("access"))
    running = GantryCluster(acl_enable=True, acl_file=rules["aclFile"])
    with Scene(running.namesrv, tmp_path_factory.mktemp("mqadmin")) as scene:
        yield scene.place
    running.close()


class Shell:
    """Runs mqadmin in this process."""

    def __init__(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        self.place, self._capsys = place, capsys

    def run(self, words: str, code: int = 0) -> tuple[str, str]:
        filled = [self.place.fill(word) for word in words.split(" ")]
        assert code == run([*filled, "-n", self.place.namesrv]), self._capsys.readouterr()
        found = self._capsys.readouterr()
        assert "Traceback" not in found.err
        return found.out, found.err

    def read(self) -> str:
        return self._capsys.readouterr().out

    def json(self, words: str) -> Any:
        return json.loads(self.run(f"-o json {words}")[0])


@pytest.fixture
def shell(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.chdir(place.files)
    return Shell(place, capsys)


CASES = {case.name: case for case in cases()}
OURS = "ours"
ONLY_ON_SLAVES = "resetMasterFlushOffset"


def test_every_command_is_tried() -> None:
    """
    A command that is added needs a paragraph in mqadmin_commands.txt.
    """
    known = {*CASES, ONLY_ON_SLAVES, *refused.REASONS, *MONITORING}

    assert known == {command.name for command in COMMANDS}


MONITORING = {name for name in ("startMonitoring",) if any(c.name == name for c in COMMANDS)}
"""It runs until it is stopped, and has a test of its own."""


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_command_does_its_work(shell: Shell, case: Case) -> None:
    """
    It ends with 0 and prints RocketMQ's columns or sentences; `-o json` prints the same as JSON.
    """
    if OURS in case.refused:
        _, err = shell.run(case.words, code=1)
        assert case.refused[OURS] in err
        return
    for words in case.needs:
        shell.run(words)
    with case.typed():
        out, _ = shell.run(case.words)
    for words in (*case.then, *case.needs):
        shell.run(words)
    with case.typed():
        value = shell.json(case.words)
    for words in case.then:
        shell.run(words)

    assert missing_line(case, shell.place, out, OURS, "5") is None, out
    assert value


@pytest.mark.parametrize("name", refused.REASONS)
def test_what_has_no_meaning_here_says_why(shell: Shell, name: str) -> None:
    """
    Whatever options it is given: one line, and exit code 1.
    """
    out, err = shell.run(f"{name} -b {{broker}} -c DefaultCluster -u x", code=1)

    assert "" == out
    assert re.fullmatch(rf"error: {name} has no meaning here: .+\n", err)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_has_help(command: Any, shell: Shell) -> None:
    """
    `-h` and `help COMMAND` print its options and end with 0.
    """
    with pytest.raises(SystemExit) as ended:
        shell.run(f"{command.name} -h")
    assert 0 == ended.value.code
    shell.read()
    assert 0 == run(["help", command.name])
    out = shell.read()

    assert out.startswith(f"usage: mqadmin {command.name} ")
    assert all(f"--{option.name}" in out for option in command.options)


WRONG = {
    "topicStatus": "the following arguments are required: -t/--topic",
    "topicStatus -t nobody": "no route for topic 'nobody'",
    "topicStatus -x 1 -t orders": "unrecognized arguments: -x 1",
    "updateTopic -t made": "-b or -c is needed; see 'mqadmin help updateTopic'",
    "updateTopic -t made -c Elsewhere": "no cluster 'Elsewhere'; known: DefaultCluster",
    "updateTopic -t made -b 127.0.0.1:1": "no broker at '127.0.0.1:1'; known: ",
    "updateTopic -t made -b {broker} -p 7": "'7' is no permission: 2 is write, 4 is read",
    "updateTopic -t made -b {broker} -r many": "'many' is no whole number",
    "updateTopic -t made -b {broker} -a size=1": "'size=1' is no change of an attribute",
    "updateTopicList -b {broker} -f nowhere.json": "the file path nowhere.json does not exists",
    "brokerStatus -b 127.0.0.1:1": "127.0.0.1:1",
    "consumerProgress -g nobody": "Not found the consumer group consume stats",
    "consumerConnection -g nobody": "no consumer of group 'nobody' is online",
    "consumerStatus -g billing -i nobody": "no member 'nobody' of group 'billing' is connected",
    "producerConnection -g nobody -t orders": "the producer group [nobody] not exist",
    "resetOffsetByTime -g billing -t orders -s someday": "someday",
    "resetOffsetByTime -g billing -t orders -s now -q 0": "-b and -q are given together",
    "queryMsgByOffset -t orders -b {name} -i 0 -o 999": "no message at offset 999",
    "queryMsgById -i zzz": "'zzz' is no message id",
    "printMsg -t orders -c EBCDIC-9": "'EBCDIC-9' is no character set",
    "wipeWritePerm -b nobody": "no broker 'nobody'; known: {name}",
    "cloneGroupOffset -s nobody -d x -t orders": "no group 'nobody'",
    "cloneGroupOffset -s billing -d billing -t orders": "stop its members first",
    "topicLst": "The sub command topicLst not exist. Did you mean topicList?",
    "exportConfigs -c DefaultCluster -f /dev/null/x": "cannot be written",
    "setConsumeMode -b {broker} -t orders -g billing -m PUSH": "-m is PULL or POP, not 'PUSH'",
    "sendMessage -t orders -p x -b {name}": "-b and -i are given together",
}  # fmt: skip


@pytest.mark.parametrize("words", WRONG)
def test_bad_input_is_one_line(shell: Shell, words: str) -> None:
    """
    It names what is wrong, ends with 1, and nothing is printed to stdout but what was begun.
    """
    _, err = shell.run(words, code=1)
    wanted = shell.place.fill(WRONG[words])

    assert err.startswith("error: ")
    assert wanted in err
    assert 1 == err.count("\n")


def test_a_broker_says_why_it_keeps_no_flush_offset(shell: Shell) -> None:
    """
    RocketMQ's slaves take it; here the reason of the refusal is printed, and the exit code is 1.
    """
    _, err = shell.run(f"{ONLY_ON_SLAVES} -b {{broker}} -o 5", code=1)

    assert "a slave keeps no flush offset of its master" in err


def test_a_reset_of_one_cluster_leaves_others_alone(shell: Shell) -> None:
    """
    With a cluster that has no broker of the topic nothing is moved, and it is said.
    """
    shell.run("updateSubGroup -b {broker} -g stays")
    shell.run("resetOffsetByTimeOld -g stays -t orders -s 1577836800000 -c DefaultCluster")
    before = shell.json("consumerProgress -g stays -t orders")["rows"]
    _, err = shell.run("skipAccumulatedMessage -g stays -t orders -c Elsewhere", code=1)

    assert "no cluster 'Elsewhere'; known: DefaultCluster" in err
    assert before == shell.json("consumerProgress -g stays -t orders")["rows"]
    shell.run("skipAccumulatedMessage -g stays -t orders -c DefaultCluster")
    assert before != shell.json("consumerProgress -g stays -t orders")["rows"]


@pytest.mark.parametrize("command", ["topicList", "clusterList", "statsAll", "getNamesrvConfig"])
def test_a_name_server_that_is_down_is_one_line(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It names the address.
    """
    assert 1 == run([command, "-n", "127.0.0.1:1"])
    err = capsys.readouterr().err

    assert "127.0.0.1:1" in err
    assert 1 == err.count("\n")


def test_without_a_name_server_the_ways_to_name_one_are_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    One line that has the environment variable.
    """
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    assert 1 == run(["topicList"])
    assert "NAMESRV_ADDR" in capsys.readouterr().err


def test_without_words_all_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """
    In RocketMQ's words, each with its summary.
    """
    assert 0 == run([])
    out = capsys.readouterr().out

    assert out.startswith("The most commonly used mqadmin commands are:\n   updateTopic ")
    assert all(f"   {command.name} " in out for command in COMMANDS)


def test_batches_reach_the_broker(shell: Shell) -> None:
    """
    Topics and groups of files are there, with what the files say.
    """
    shell.run("updateTopicList -b {broker} -f {files}/topics.json")
    shell.run("updateSubGroupList -b {broker} -f {files}/groups.json")

    route = shell.json("topicRoute -t listed")
    assert 3 == route["queueDatas"][0]["readQueueNums"]
    settings = {row["key"]: row["value"] for row in shell.json("getConsumerConfig -g listed")}
    assert 3 == settings["retryMaxTimes"]


def test_cloned_progress_is_the_sources(shell: Shell) -> None:
    """
    The copy of a group stands where the source stands.
    """
    shell.run("updateSubGroup -b {broker} -g twin")
    shell.run("cloneGroupOffset -s billing -d twin -t orders")

    def offsets(group: str) -> list[tuple[int, int]]:
        rows = shell.json(f"consumerProgress -g {group} -t orders")["rows"]
        return [(r["queueId"], r["consumerOffset"]) for r in rows if r["topic"] == "orders"]

    assert offsets("billing") == offsets("twin")


def test_a_message_is_sent_again(shell: Shell) -> None:
    """
    The copy has the body, the tag and the keys of the first, and an id of its own.
    """
    shell.run("updateTopic -c DefaultCluster -t again")
    shell.run("sendMessage -t again -p once -k key-9 -c late")
    (first,) = shell.json("queryMsgByKey -t again -k key-9")
    shell.run(f"queryMsgById -i {first['msgId']} -t again -s true")
    found = shell.json("printMsg -t again")

    assert [("once", "late", ["key-9"])] * 2 == [(m["body"], m["tags"], m["keys"]) for m in found]
    assert 2 == len({message["msgId"] for message in found})


def test_a_pipe_that_closes_is_no_error(place: Place) -> None:
    """
    `mqadmin topicList | head -1` ends quietly.
    """
    ended = subprocess.run(
        f"{sys.executable} -m gantrymq.cli.mqadmin.main topicList -n {place.namesrv} | head -1",
        shell=True, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert "" == ended.stderr


def test_a_list_of_thousands_is_saved_once(shell: Shell) -> None:
    """
    A broker that saved its table for each topic would not answer within the time of a request.
    """
    many = [{"topicName": f"many-{number}"} for number in range(3000)]
    (shell.place.files / "many.json").write_text(json.dumps(many))

    shell.run("updateTopicList -b {broker} -f {files}/many.json")

    listed = {row["topic"] for row in shell.json("topicList")}
    assert {topic["topicName"] for topic in many} <= listed
