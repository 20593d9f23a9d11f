"""Topics and groups that an archive or a store does not have: an error, before Spark starts."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from lakekit import NOON, written
from sparkkit import Processes
from storekeeping import TOPIC, keep_store, message

from gantrymq import Queue
from gantrymq.cli.main import main
from gantrymq.pipelines.lake import Change, open_table

NOWHERE = ["-n", "127.0.0.1:1"]
REPORT = ["pipeline", "report", "--into", "{new}"]
REPLAY = ["pipeline", "replay", "--all", "--into", "again", *NOWHERE]
ARCHIVE = ["pipeline", "archive", "--into", "{new}"]
IN_ARCHIVE = "there is no topic 'order' in the archive {archive}; did you mean 'orders'?"
IN_STORE = "there is no topic {name!r} in the store {store}; "
NEAR = TOPIC[:-1]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """An archive of the topic `orders`, a store, and a folder that there is not."""
    table = open_table(tmp_path / "archive", "delta", create=True)
    queue = Queue("orders", "broker-a", 0)
    table.commit(Change(NOON, written(table.root, queue, 0, 9), ends={queue: 10}))
    store = tmp_path / "store"
    keep_store(store, [message(0, "x", unique="0" * 32)])
    (store / "config").mkdir(exist_ok=True)
    progress = {"offsetTable": {f"{TOPIC}@billing": {"0": 1}}}
    (store / "config" / "consumerOffset.json").write_text(json.dumps(progress))
    return {"archive": str(table.root), "store": str(store), "new": str(tmp_path / "new")}


@pytest.mark.parametrize(
    "words, said",
    [
        ([*REPORT, "--archive", "{archive}", "--topic", "order"], IN_ARCHIVE),
        ([*REPORT, "--store", "{store}", "--topic", NEAR], f"{IN_STORE}did you mean '{TOPIC}'?"),
        ([*REPORT, "--store", "{store}", "--topic", "%"], f"{IN_STORE}there is "),
        ([*REPORT, "--store", "{store}", "--group", "biling"],
         "there is no group 'biling' in the store {store}; did you mean 'billing'?"),
        ([*REPLAY, "--from", "{archive}", "--topic", "order"], IN_ARCHIVE),
        ([*REPLAY, "--from", "store:{store}", "--topic", NEAR], IN_STORE),
        ([*ARCHIVE, "--store", "{store}", "--topic", NEAR], IN_STORE),
        (["find", "order", "--key", "k3", "--archive", "{archive}", *NOWHERE],
         "there is no topic 'order' in the cluster or in {archive}; did you mean 'orders'?"),
        (["find", "xyz", "--key", "k3", "--archive", "{archive}", *NOWHERE],
         "there is no topic 'xyz' in the cluster or in {archive}; there is orders"),
        (["why", "0" * 32, "--topic", "order", "--archive", "{archive}", *NOWHERE],
         "there is no topic 'order' in the cluster or in {archive}"),
    ],
    ids=lambda words: "-".join(words[:2]) if isinstance(words, list) else "",
)  # fmt: skip
def test_an_unknown_name_is_an_error_that_names_what_there_is(
    words: list[str], said: str, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 1, one line, and nothing is written."""
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    asked = [word.format(**places) for word in words]
    name = asked[asked.index("--topic") + 1] if "--topic" in asked else ""

    ended = CliRunner().invoke(main, asked)

    assert 1 == ended.exit_code, ended.output
    assert said.format(**places, name=name) in ended.stderr
    assert 1 == len(ended.stderr.splitlines())
    assert not Path(places["new"]).exists()


def test_what_the_cluster_alone_has_is_found_beside_an_archive(
    cluster: Processes, topic: str, places: dict[str, str]
) -> None:
    """A topic that is not archived yet is no unknown one; a report on the archive does not have
    it."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [1])
    where = ["--archive", places["archive"], "-n", cluster.namesrv]

    found = CliRunner().invoke(main, ["find", topic, "--from", "2000-01-01", *where])
    told = CliRunner().invoke(main, [*REPORT[:3], places["new"], "--topic", topic, *where])

    assert (0, 1) == (found.exit_code, told.exit_code)
    assert f"there is no topic '{topic}' in the archive" in told.stderr
