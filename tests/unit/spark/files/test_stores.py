"""`via=store` through the face that readers use: options, several stores, exact choices."""

import json
from pathlib import Path
from typing import Any

import pytest
from storekeeping import BROKER, START_MS, TOPIC, contents, keep_store, message

from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.spark.datasource import StreamReader
from gantrymq.spark.files.stores import parse_store_path
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.source.rows import open_rows
from gantrymq.store.files.folder import StoreFolder


def read(settings: dict[str, str], *columns: str) -> list[dict[str, Any]]:
    """Every row that the options choose."""
    with open_rows(parse_source_options({"via": "store", **settings})) as rows:
        lows, highs = rows.bounds()
        return [
            row
            for queue in sorted(highs)
            for batch in rows.batches(
                OffsetRange(queue, lows[queue], highs[queue]), columns or ("body",)
            )
            for row in batch.to_pylist()
        ]


def bodies(found: list[dict[str, Any]]) -> list[str]:
    return sorted(bytes(row["body"]).decode() for row in found)


def write_topics(store: Path, **topics: tuple[int, int]) -> None:
    """The broker's table of topics: permission and queues of each."""
    table = {
        name: {"perm": perm, "readQueueNums": queues, "writeQueueNums": queues}
        for name, (perm, queues) in topics.items()
    }
    path = store / "config" / "topics.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"topicConfigTable": table}))


def test_several_stores_are_read_as_one(tmp_path: Path) -> None:
    """Each store is that of a broker; rows say of which."""
    for name in ("a", "b"):
        keep_store(tmp_path / name, [message(0, f"{name}{number}") for number in range(5)])

    path = f"broker-a={tmp_path}/a, broker-b={tmp_path}/b"
    found = read({"storePath": path, "topic": TOPIC}, "brokerName", "body")

    assert [f"{name}{number}" for name in "ab" for number in range(5)] == bodies(found)
    assert {f"broker-{bytes(row['body']).decode()[0]}" == row["brokerName"] for row in found} == {
        True
    }


def test_a_store_tells_its_brokers_name(tmp_path: Path) -> None:
    """Brokers keep a topic that is called like themselves; without it the name must be given."""
    keep_store(tmp_path, [message(0, "x")])
    settings = {"storePath": str(tmp_path), "topic": TOPIC}
    with pytest.raises(ConfigError, match=f"broker-a={tmp_path}"):
        read(settings)

    write_topics(tmp_path, **{"east-1": (7, 1), "TBW102": (7, 8), TOPIC: (6, 3), "one": (6, 1)})

    assert "east-1" == StoreFolder(str(tmp_path)).broker_name()
    assert [{"brokerName": "east-1"}] == read(settings, "brokerName")


def test_queues_without_messages_are_there(tmp_path: Path) -> None:
    """A stream must know a queue before its first message comes."""
    keep_store(tmp_path, [message(1, "x")])
    write_topics(tmp_path, **{TOPIC: (6, 3)})
    options = parse_source_options(
        {"via": "store", "storePath": f"{BROKER}={tmp_path}", "topic": TOPIC}
    )  # fmt: skip

    with open_rows(options) as rows:
        _, highs = rows.bounds()

    assert {Queue(TOPIC, BROKER, number): int(number == 1) for number in range(3)} == highs


def test_tags_with_the_same_hash_are_told_apart(tmp_path: Path) -> None:
    """The entry's hash comes first, the text of the record after."""
    keep_store(tmp_path, [message(0, tag, tags=tag) for tag in ("Aa", "BB", "C#", "other")])

    found = read({"storePath": f"{BROKER}={tmp_path}", "topic": TOPIC, "tags": "BB || other"})

    assert ["BB", "other"] == bodies(found)


@pytest.mark.parametrize("index", [True, False], ids=["index", "no index"])
def test_keys_are_exact(tmp_path: Path, index: bool) -> None:
    """With the index or without it: the messages that carry one of the keys, and no others."""
    keep_store(
        tmp_path,
        [message(0, f"{number}", keys=f"k{number} all") for number in range(40)],
        index_enabled=index,
    )

    found = read({"storePath": f"{BROKER}={tmp_path}", "topic": TOPIC, "keyFilter": "k3 k17 k"})

    assert ["17", "3"] == bodies(found)


def test_queues_topics_and_text_are_chosen(tmp_path: Path) -> None:
    """The other options mean what they mean over the wire."""
    sent = [message(n % 4, f"{topic}{n}", topic=topic) for topic in ("o1", "o2") for n in range(8)]
    keep_store(tmp_path, sent)
    path = f"{BROKER}={tmp_path}"

    found = read({"storePath": path, "subscribePattern": "o.*", "queues": "1,3", "bodyAs": "text"})

    assert sorted(f"o{t}{n}" for t in (1, 2) for n in (1, 3, 5, 7)) == sorted(
        row["body"] for row in found
    )


def test_times_and_samples_come_from_files(tmp_path: Path) -> None:
    """A batch is planned without a broker."""
    keep_store(tmp_path, [message(0, "x" * 200) for _ in range(20)])
    options = parse_source_options(
        {"via": "store", "storePath": f"{BROKER}={tmp_path}", "topic": TOPIC}
    )  # fmt: skip
    queue = Queue(TOPIC, BROKER, 0)

    with open_rows(options) as rows:
        assert {queue: 0} == rows.offsets_at({queue: START_MS})
        (sample,) = rows.samples({queue: 5}).values()
        assert {} == rows.samples({queue: 20})
        with pytest.raises(ConfigError, match="set nameServer"):
            rows.committed([queue])

    assert 200 < sample.size < 400
    assert sample.store_ms > START_MS


def test_a_missing_topic_is_named_with_the_nearest(tmp_path: Path) -> None:
    """And nothing is written while looking."""
    keep_store(tmp_path, [message(0, "x")])
    before = contents(tmp_path)

    with pytest.raises(ConfigError, match=rf"no topic order in {tmp_path}; did you mean orders\?"):
        read({"storePath": f"{BROKER}={tmp_path}", "topic": "order"})

    assert before == contents(tmp_path)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"storePath": "/nowhere"}, "/nowhere is no store.*or set nameServer"),
        ({"storePath": "/nowhere", "nameServer": "h:1", "storeAccess": "require"}, "no store"),
        ({"storePath": " , "}, "storePath is empty"),
        ({"storePath": "a=/x,b=/x"}, "twice"),
        ({"storePath": "/x", "storeAccess": "never"}, "nameServer is missing"),
        ({"storePath": "/x", "storeAccess": "maybe"}, "storeAccess"),
        ({}, "via=store needs storePath"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(settings: dict[str, str], text: str) -> None:
    """The first line says what to do."""
    with pytest.raises(GantryError, match=text):
        read({"topic": TOPIC, **settings})


def test_store_paths_have_names_or_none() -> None:
    """A name is what stands in front of an equals sign; a folder may have one in its path."""
    assert [(None, "/data/store")] == parse_store_path("/data/store")
    assert [("a", "/x"), ("b", "/y=z")] == parse_store_path("a=/x, b=/y=z")
    assert [(None, "/x/k=v/store")] == parse_store_path("/x/k=v/store")


@pytest.mark.parametrize("text", ["a=/x,b=/x/", "/x,/x", "a=/x,a=/y"])
def test_a_store_and_a_broker_are_named_once(text: str) -> None:
    """A slash at the end makes no other folder."""
    with pytest.raises(ConfigError, match="twice"):
        parse_store_path(text)


def test_two_stores_of_one_broker_are_refused(tmp_path: Path) -> None:
    """One of them would be left out without a word."""
    for name in ("a", "b"):
        keep_store(tmp_path / name, [message(0, name)])
        write_topics(tmp_path / name, **{"east-1": (7, 1), "TBW102": (7, 8), TOPIC: (6, 3)})

    with pytest.raises(ConfigError, match=f"two stores of east-1: {tmp_path}/a and {tmp_path}/b"):
        read({"storePath": f"{tmp_path}/a,{tmp_path}/b", "topic": TOPIC})


def test_a_stream_follows_files_alone(tmp_path: Path) -> None:
    """Batch after batch, as the store grows; each message once, and no broker is asked."""
    path = f"{BROKER}={tmp_path}"
    settings = {"via": "store", "storePath": path, "topic": TOPIC, "startingOffsets": "earliest"}
    settings["columns"] = "body"
    keep_store(tmp_path, [message(n % 2, f"{n}") for n in range(10)])
    reader = StreamReader(parse_source_options(settings, streaming=True))
    found: list[dict[str, Any]] = []

    offset = reader.initialOffset()
    for more in (range(10, 14), range(14, 50), range(0)):
        end = reader.latestOffset(offset, reader.getDefaultReadLimit())
        for part in reader.partitions(offset, end):
            found += [row for batch in reader.read(part) for row in batch.to_pylist()]
        keep_store(tmp_path, [message(n % 2, f"{n}") for n in more])
        offset = end
    reader.stop()

    assert sorted(str(number) for number in range(50)) == bodies(found)
    assert offset == {TOPIC: {BROKER: {"0": 25, "1": 25}}}
