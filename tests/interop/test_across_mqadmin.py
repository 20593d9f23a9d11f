"""RocketMQ's mqadmin against our brokers, and ours against RocketMQ's, command by command.

Both print the lines of `tests/kits/mqadmin_commands.txt`; the table at the end says what was run.
"""

import json
import sys
from collections.abc import Iterator

import pytest
from clients import JavaClient
from clusters import SETTINGS
from mqadminkit import Case, Place, Scene, cases, missing_line, white_listed
from real import OurCluster, RealCluster

from gantrymq.cli.mqadmin.main import run
from gantrymq.protocol import refusals

CASES = cases()
TOOLS = ["4.9.8", "5.3.3", "5.5.0"]
BROKERS = ["4.9.7", "5.3.3", "5.5.0"]
TABLE: dict[str, dict[str, str]] = {}
"""What was seen: command to tool to result."""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    """Print what was run, for people."""
    yield
    names = list(dict.fromkeys(name for row in TABLE.values() for name in row))
    lines = [f"{'command':28}" + "".join(f"{name:>16}" for name in names)]
    lines += [
        f"{command:28}" + "".join(f"{row.get(name, '-'):>16}" for name in names)
        for command, row in TABLE.items()
    ]
    sys.stdout.write("\n".join(["", *lines, ""]))


@pytest.fixture(scope="module")
def ours(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    access = white_listed(tmp_path_factory.mktemp("access"))
    with (
        OurCluster(settings={**SETTINGS, **access}) as cluster,
        Scene(cluster.namesrv, tmp_path_factory.mktemp("ours")) as scene,
    ):
        yield scene.place


@pytest.fixture(scope="module", params=BROKERS)
def theirs(
    programs: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Place]]:
    with (
        RealCluster(request.param, settings=SETTINGS) as cluster,
        Scene(cluster.namesrv, tmp_path_factory.mktemp(request.param)) as scene,
    ):
        yield request.param, scene.place


@pytest.mark.parametrize("version", TOOLS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rocketmqs_tool_works_on_our_brokers(case: Case, version: str, ours: Place) -> None:
    """
    It prints no stack trace, and the lines that ours prints.
    """
    row = TABLE.setdefault(case.name, {})
    words = case.words_for(version, "real")
    if words is None:
        row[f"mqadmin {version}"] = "not run"
        return
    tool = JavaClient(version)

    def said(typed: str) -> str:
        filled = [ours.fill(word) for word in typed.split(" ")]
        value: str = tool.run("mqadmin", namesrv=ours.namesrv, topic="x", words=filled).value
        return value

    for before in case.needs:
        said(before)
    printed = said(words)
    for after in case.then:
        said(after)

    if "ours" in case.refused:
        row[f"mqadmin {version}"] = "refused"
        assert case.refused["ours"] in printed
        return
    row[f"mqadmin {version}"] = f"{len(case.lines)} lines"
    assert "\n\tat " not in printed, printed
    tools = (version, "real") if version == "4.9.8" else (version, "real", "5")
    assert missing_line(case, ours, printed, *tools) is None, printed


REFUSED = {
    "getColdDataFlowCtrInfo": "-b {broker}",
    "updateColdDataFlowCtrGroupConfig": "-b {broker} -g billing -v 10",
    "removeColdDataFlowCtrGroupConfig": "-b {broker} -g billing",
    "setCommitLogReadAheadMode": "-b {broker} -m 1",
    "getSyncStateSet": "-a {broker} -b {name}",
    "getControllerMetaData": "-a {broker}",
    "getControllerConfig": "-a {broker}",
    "updateControllerConfig": "-a {broker} -k a -v b",
    "electMaster": "-a {broker} -b 1 -bn {name} -c DefaultCluster",
    "cleanBrokerMetadata": "-a {broker} -bn {name} -c DefaultCluster",
    "addBroker": "-c {broker} -b nowhere.conf",
    "removeBroker": "-c {broker} -b DefaultCluster:{name}:1",
    "updateStaticTopic": "-b {name} -t static -qn 4",
    "resetMasterFlushOffset": "-b {broker} -o 5",
}
"""What our brokers refuse, as RocketMQ's tools ask for it."""


@pytest.mark.parametrize("version", ["5.3.3", "5.5.0"])
@pytest.mark.parametrize("name", REFUSED)
def test_rocketmqs_tool_is_told_what_our_brokers_refuse(
    name: str, version: str, ours: Place
) -> None:
    """
    The reason stands in what it prints.
    """
    words = [ours.fill(word) for word in f"{name} {REFUSED[name]}".split(" ")]
    printed = JavaClient(version).run("mqadmin", namesrv=ours.namesrv, topic="x", words=words).value

    TABLE.setdefault(name, {})[f"mqadmin {version}"] = "refused"
    assert any(reason in printed for reason in refusals.REFUSED.values()), printed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_our_tool_works_on_rocketmqs_brokers(
    case: Case,
    theirs: tuple[str, Place],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    It prints the lines that it prints with our brokers, or says in one line what they refuse.
    """
    version, place = theirs
    monkeypatch.chdir(place.files)

    def said(typed: str, *, code: int = 0) -> tuple[str, str]:
        filled = [place.fill(word) for word in typed.split(" ")]
        assert code == run([*filled, "-n", place.namesrv]), capsys.readouterr()
        found = capsys.readouterr()
        return found.out, found.err

    row = TABLE.setdefault(case.name, {})
    refusal = case.refused.get(version)
    if refusal is not None:
        with case.typed():
            _, err = said(case.words, code=1)
        row[f"on {version}"] = "refused"
        assert refusal in err
        assert 1 == err.count("\n")
        return
    for before in case.needs:
        said(before)
    with case.typed():
        printed, _ = said(case.words)
    with case.typed():
        value = said(f"-o json {case.words}")[0] if not case.needs else '"not twice"'
    for after in case.then:
        said(after)

    row[f"on {version}"] = f"{len(case.lines)} lines"
    assert missing_line(case, place, printed, "ours", "5") is None, printed
    assert json.loads(value)
