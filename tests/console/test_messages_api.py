"""Messages through the API: searches that go on, ids, keys, tails, bodies, masks, resends."""

import asyncio
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import pytest
from consolekit import NAME, Site, console, until
from consumekit import send_these

from gantrymq import Message, Producer, SendResult
from gantrymq.client.admin.messages.paged_search import QueueSpan, SearchPlace
from gantrymq.console.api import messages
from gantrymq.console.api.cursors import cursor_of
from gantrymq.testing.threaded import GantryCluster

BASE = f"/clusters/{NAME}"
MESSAGES = f"{BASE}/messages"
CARD = "4111 1111 1111 1111"


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    with console(gantry) as site:
        yield site


def place(result: SendResult) -> str:
    queue = result.queue
    return f"{MESSAGES}/{queue.topic}/{queue.broker_name}/{queue.queue_id}/{result.offset}"


def searched(site: Site, **question: object) -> list[dict[str, Any]]:
    """All messages of a search, page by page."""
    found: list[dict[str, Any]] = []
    for _ in range(100):
        page = site.api("GET", MESSAGES, **question)
        found += page["messages"]
        if page["cursor"] is None:
            assert page["isComplete"], page
            return found
        question["cursor"] = page["cursor"]
    raise AssertionError("the search did not end")


def previews(rows: list[dict[str, Any]]) -> list[str]:
    return [row["preview"] for row in rows]


def test_a_search_goes_on_to_the_end(site: Site, gantry: GantryCluster) -> None:
    """Over all queues in the order of store times, without one message missing or twice."""
    send_these(gantry.namesrv, *(Message("orders", b"%d" % number) for number in range(130)))

    newest = searched(site, topic="orders", limit=7)
    oldest = searched(site, topic="orders", limit=50, order="oldest")

    assert sorted(map(int, previews(newest))) == list(range(130))
    assert previews(newest) == previews(oldest)[::-1]
    assert [row["storedMs"] for row in oldest] == sorted(row["storedMs"] for row in oldest)


def test_a_page_says_how_far_it_looked(site: Site, gantry: GantryCluster) -> None:
    """In messages and in queues, and whether that was all."""
    send_these(gantry.namesrv, *(Message("orders", b"%d" % number) for number in range(20)))

    page = site.api("GET", MESSAGES, topic="orders", limit=5)

    assert not page["isComplete"]
    assert (page["lookedAt"] >= 5, page["inAll"]) == (True, 20)
    assert sum(queue["left"] for queue in page["queues"]) == 20 - page["lookedAt"]
    assert page["reachedMs"] == page["messages"][-1]["storedMs"]


def test_filters(site: Site, gantry: GantryCluster) -> None:
    """By tags, by a condition on properties, and by text in body, keys and properties."""
    send_these(
        gantry.namesrv,
        Message("orders", b"one", tags="a", properties={"amount": "5"}),
        Message("orders", b"two", tags="b", properties={"amount": "50"}),
        Message("orders", b"three", keys=["k-3"]),
    )

    assert previews(searched(site, topic="orders", tags="a || b")) == ["two", "one"]
    assert previews(searched(site, topic="orders", sql="amount > 10")) == ["two"]
    assert previews(searched(site, topic="orders", text="k-3")) == ["three"]
    assert previews(searched(site, topic="orders", text="wo")) == ["two"]


def test_a_text_is_found_however_json_writes_it(site: Site, gantry: GantryCluster) -> None:
    """A list shows letters, and so does a search find them, also behind a rule."""
    bodies = [json.dumps({"n": name, "pin": "ü-1"}).encode() for name in ("Müller", "M\\u00fcller")]
    send_these(gantry.namesrv, *(Message("orders", body) for body in bodies))
    send_these(gantry.namesrv, Message("orders", json.dumps({"n": "Mübel"}, ensure_ascii=False)))

    assert previews(searched(site, topic="orders", text="Müller")) == [
        '{ "n": "Müller", "pin": "ü-1" }'
    ]
    assert len(searched(site, topic="orders", text="Mü")) == 2
    site.api("POST", f"{BASE}/masking", topic="orders", kind="path", what="pin")
    assert searched(site, topic="orders", text="ü-1") == []
    site.api("POST", f"{BASE}/masking", topic="orders", kind="pattern", what="Müll")
    assert searched(site, topic="orders", text="Müll") == []


def test_a_search_between_two_times_or_in_one_queue(site: Site, gantry: GantryCluster) -> None:
    """Both ends of the time count; in a queue it begins at an offset."""
    first = send_these(gantry.namesrv, Message("orders", b"early"))[0]
    gantry.clock.advance(3600)
    send_these(gantry.namesrv, *(Message("orders", b"late-%d" % number) for number in range(4)))
    late_ms = searched(site, topic="orders")[-2]["storedMs"]

    assert previews(searched(site, topic="orders", untilMs=late_ms - 1)) == ["early"]
    assert len(searched(site, topic="orders", fromMs=late_ms)) == 4
    queue = {"broker": first.queue.broker_name, "queueId": first.queue.queue_id}
    found = searched(site, topic="orders", offset=first.offset, **queue)
    assert previews(found)[0] == "early"
    assert {row["queueId"] for row in found} == {first.queue.queue_id}


@pytest.mark.parametrize("newest", [True, False])
def test_what_is_gone_since_a_search_began_is_said_up_to_its_end(
    site: Site, gantry: GantryCluster, newest: bool
) -> None:
    """A broker that came back with less has gaps, and no page after them says that it saw all."""
    sent = send_these(gantry.namesrv, *(Message("orders", b"%d" % number) for number in range(60)))
    last = max(sent, key=lambda each: each.offset)
    end, missing = last.offset + 1, last.offset + 400
    span = QueueSpan(last.queue.broker_name, last.queue.queue_id, 0, missing,
                     missing if newest else 0)  # fmt: skip
    cursor: str | None = cursor_of(SearchPlace("orders", newest, 0, 1 << 60, False, [span]))

    pages = []
    while cursor is not None:
        pages.append(site.api("GET", MESSAGES, topic="orders", cursor=cursor, limit=5))
        cursor = pages[-1]["cursor"]

    assert sum(len(page["messages"]) for page in pages) == end
    assert "not there any more" in str([page["gaps"] for page in pages])
    assert not any(page["isComplete"] for page in pages)


@pytest.mark.parametrize(
    "question, status, said",
    [
        ({"topic": "missing"}, 404, "missing"),
        ({"topic": "orders", "sql": "a >"}, 409, "a >"),
        ({"topic": "orders", "cursor": "xxx"}, 400, "cursor"),
        ({"topic": "orders", "offset": 1}, 400, "queue"),
        ({"topic": "orders", "limit": 100000}, 400, "limit"),
        ({"topic": "orders", "broker": "no-such", "queueId": 0}, 409, "no-such"),
    ],
)
def test_a_search_that_makes_no_sense_says_why(
    site: Site, gantry: GantryCluster, question: dict[str, object], status: int, said: str
) -> None:
    """With the status of an error, and a sentence."""
    gantry.create_topic("orders")

    reply = site.call("GET", MESSAGES, **question)

    assert (status, True) == (reply.status, said in reply.text), reply.text


def test_a_message_is_found_by_both_ids_and_by_key(site: Site, gantry: GantryCluster) -> None:
    """With its topic or without."""
    sent = send_these(gantry.namesrv, Message("orders", b"x", keys=["k-1"]))[0]

    for id_, question in (
        (sent.msg_id, {"topic": "orders"}),
        (sent.msg_id, {}),
        (sent.offset_msg_id, {}),
    ):
        found = site.api("GET", f"{BASE}/message-ids/{id_}", **question)
        assert [row["msgId"] for row in found["messages"]] == [sent.msg_id], (id_, found)
    by_key = site.api("GET", f"{BASE}/message-keys", topic="orders", key="k-1")
    assert (previews(by_key["messages"]), by_key["isComplete"]) == (["x"], True)
    assert site.api("GET", f"{BASE}/message-ids/nothing", topic="orders")["messages"] == []


def test_keys_of_many_messages_are_paged(site: Site, gantry: GantryCluster) -> None:
    """The newest first; the answer says with which time to go on."""
    for number in range(6):
        send_these(gantry.namesrv, Message("orders", b"%d" % number, keys=["k"]))
        gantry.clock.advance(1)

    page = site.api("GET", f"{BASE}/message-keys", topic="orders", key="k", limit=4)
    rest = site.api(
        "GET", f"{BASE}/message-keys", topic="orders", key="k", untilMs=page["goOnUntilMs"]
    )

    assert previews(page["messages"]) == ["5", "4", "3", "2"]
    assert set(previews(rest["messages"])) >= {"1", "0"}


def test_a_message_page_has_everything(site: Site, gantry: GantryCluster) -> None:
    """Body, properties of both kinds, hosts, times, and the ends of the queue."""
    sent = send_these(
        gantry.namesrv,
        Message("orders", b'{"a":1}', tags="t", keys=["k"], properties={"shop": "x"}),
    )[0]

    found = site.api("GET", place(sent))

    assert found["body"]["form"] == "json"
    assert found["body"]["text"] == '{\n  "a": 1\n}'
    kinds = {each["name"]: each["isSystem"] for each in found["properties"]}
    assert kinds["shop"] is False
    assert kinds["TAGS"] is kinds["KEYS"] is kinds["UNIQ_KEY"] is True
    assert found["bornHost"].startswith("127.0.0.1:")
    assert (found["firstOffset"], found["endOffset"]) == (0, 1)
    assert site.call("GET", place(sent).rsplit("/", 1)[0] + "/99").status == 404


def test_bodies_are_decoded_with_a_schema(site: Site, gantry: GantryCluster) -> None:
    """One that is pasted, or one that is kept for the topic and then used by itself."""
    avro, proto = send_these(gantry.namesrv, Message("a", b"\x04hi"), Message("p", b"\x0a\x02hi"))
    file = "syntax = 'proto3'; message A { string word = 1; }"

    pasted = site.api("GET", place(avro), form="avro", schema='"string"')
    raw = site.api("GET", place(proto), form="protobuf")
    wrong = site.api("GET", place(avro), form="avro", schema='"double"')
    site.api("POST", f"{BASE}/schemas", topic="p*", form="protobuf", text=file)
    kept = site.api("GET", place(proto))

    assert json.loads(pasted["body"]["text"]) == "hi"
    assert json.loads(raw["body"]["text"]) == {"#1": ["hi"]}
    assert "does not fit" in wrong["body"]["trouble"]
    assert json.loads(kept["body"]["text"]) == {"word": "hi"}
    assert previews(searched(site, topic="p")) == ['{ "word": "hi" }']
    (schema,) = site.api("GET", f"{BASE}/schemas")["schemas"]
    site.api("DELETE", f"{BASE}/schemas/{schema['id']}")
    assert site.api("GET", place(proto))["body"]["form"] != "protobuf"
    assert site.call("POST", f"{BASE}/schemas", topic="p", form="avro", text="{").status != 200


def test_a_large_body_is_cut_on_the_page_and_whole_in_the_download(
    site: Site, gantry: GantryCluster
) -> None:
    """Four MiB do not go into a page."""
    body = b"x" * 4_000_000
    sent = send_these(gantry.namesrv, Message("orders", body))[0]

    found = site.api("GET", place(sent))
    raw = site.ask("GET", f"/api/v1{place(sent)}/body")

    assert found["body"]["isCut"]
    assert len(found["body"]["text"]) < 300_000
    assert raw.body == body
    assert raw.headers["content-disposition"].endswith('.bin"')


def test_the_history_of_a_message(site: Site, gantry: GantryCluster) -> None:
    """The same as `gantry history` tells."""
    sent = send_these(gantry.namesrv, Message("orders", b"x"))[0]

    found = site.api("GET", f"{BASE}/message-ids/{sent.msg_id}/history", topic="orders")

    assert found["state"] == "stored"
    assert [each["what"] for each in found["events"]] == ["born", "stored"]
    assert site.call("GET", f"{BASE}/message-ids/nothing/history", topic="orders").status == 409


def test_a_message_is_sent_again_with_changes(site: Site, gantry: GantryCluster) -> None:
    """What is not given stays; the new message has an id of its own."""
    sent = send_these(
        gantry.namesrv,
        Message("orders", b"old", tags="t", keys=["k"], properties={"a": "1", "b": "2"}),
    )[0]

    same = site.api("POST", f"{place(sent)}/resend")
    other = site.api(
        "POST", f"{place(sent)}/resend", body="new", tags=None, keys=[], properties={"c": "3"}
    )

    def seen(result: dict[str, Any]) -> dict[str, Any]:
        at = f"{MESSAGES}/orders/{result['broker']}/{result['queueId']}/{result['offset']}"
        return dict(site.api("GET", at))

    first, second = seen(same), seen(other)
    assert first["row"]["msgId"] != sent.msg_id
    assert (first["body"]["text"], first["row"]["tags"], first["row"]["keys"]) == (
        "old",
        "t",
        ["k"],
    )
    assert (second["body"]["text"], second["row"]["tags"]) == ("new", None)
    own = {each["name"]: each["value"] for each in second["properties"] if not each["isSystem"]}
    assert own == {"c": "3"}


def test_filters_are_kept_per_cluster(site: Site) -> None:
    """Under a name, until somebody removes them."""
    site.api("POST", f"{BASE}/filters", name="dear <b>", topic="orders", query="sql=amount+>+10")

    assert [each["name"] for each in site.api("GET", f"{BASE}/filters")["filters"]] == ["dear <b>"]
    site.api("DELETE", f"{BASE}/filters/{quote('dear <b>', safe='')}")
    assert site.api("GET", f"{BASE}/filters")["filters"] == []
    assert site.call("DELETE", f"{BASE}/filters/x").status == 404


def test_what_is_masked_is_in_no_answer(site: Site, gantry: GantryCluster) -> None:
    """Neither in lists, nor in pages, downloads, tails, histories, nor can it be searched for."""
    body = msgspec.json.encode({"card": CARD, "note": "card-9", "deep": [{"pin": "4321-pin"}]})
    secret = {"pass": "hidden-pass"}
    sent = send_these(gantry.namesrv, Message("pay", body, keys=["key-77"], properties=secret))[0]
    rules = [("path", "**.pin"), ("pattern", r"\d(?:[ -]?\d){12,18}"), ("property", "pass"),
             ("property", "KEYS")]  # fmt: skip
    for kind, what in rules:
        site.api("POST", f"{BASE}/masking", topic="pa*", kind=kind, what=what)
    tail = site.api("GET", f"{BASE}/new-messages", topic="pay")
    send_these(gantry.namesrv, Message("pay", body, properties=secret))

    answers = [
        site.ask("GET", f"/api/v1{path}").text
        for path in (
            f"{MESSAGES}?topic=pay",
            f"{BASE}/message-keys?topic=pay&key=key-77",
            f"{BASE}/message-ids/{sent.msg_id}?topic=pay",
            f"{BASE}/message-ids/{sent.msg_id}/history?topic=pay",
            place(sent),
            *(f"{place(sent)}?form={form}" for form in ("text", "hex", "json", "protobuf")),
            f"{place(sent)}/body",
            f"{BASE}/new-messages?topic=pay&cursor={tail['cursor']}",
        )
    ]

    for answer in answers:
        for hidden in (CARD, "4321-pin", "hidden-pass", "key-77", CARD.encode().hex(" ")):
            assert hidden not in answer
    assert "card-9" in answers[0]
    assert searched(site, topic="pay", text="4321-pin") == []
    assert len(searched(site, topic="pay", text="card-9")) == 2
    assert site.call("GET", MESSAGES, topic="pay", sql="pass = 'x'").status == 400
    again = site.api("POST", f"{place(sent)}/resend", properties={"own": "1"})
    assert "hidden-pass" not in json.dumps(again)


def test_no_question_tells_what_is_masked(site: Site, gantry: GantryCluster) -> None:
    """Neither a tag, nor a key, nor a condition, also where patterns mask and copies lie."""
    (sent,) = send_these(gantry.namesrv, Message("pay", b"x", tags="vip-7", keys=["code-4711"],
                                   properties={"phone": "code-4712"}))  # fmt: skip
    site.api("POST", f"{BASE}/masking", topic="pay", kind="pattern", what="(code|vip)-[0-9]+")

    assert searched(site, topic="pay", tags="vip-7") == []
    assert searched(site, topic="pay", sql="phone = 'code-4712'") == []
    assert len(searched(site, topic="pay", sql="other IS NULL")) == 1
    assert site.api("GET", f"{BASE}/message-keys", topic="pay", key="code-4711")["messages"] == []
    assert site.api("GET", f"{BASE}/message-ids/{sent.msg_id}", topic="pay")["messages"]

    for what in ("TAGS", "KEYS", "phone"):
        site.api("POST", f"{BASE}/masking", topic="pay", kind="property", what=what)
    for topic in ("pay", "%DLQ%g"):
        gantry.create_topic(topic)
        for asked in ({"tags": "vip-7"}, {"sql": "phone = '1'"}):
            refused = site.call("GET", MESSAGES, topic=topic, **asked)
            assert (400, True) == (refused.status, "is masked" in refused.text), (topic, asked)
        assert 400 == site.call("GET", f"{BASE}/message-keys", topic=topic, key="a").status


def test_a_number_that_only_decoding_shows_is_masked(site: Site, gantry: GantryCluster) -> None:
    """A pattern is looked for in what people read, not in bytes alone."""
    (sent,) = send_these(gantry.namesrv, Message("pay", b"\x08" + varint(4111111111111111)))
    assert "4111111111111111" in site.api("GET", place(sent), form="protobuf")["body"]["text"]
    site.api("POST", f"{BASE}/masking", topic="pay", kind="pattern", what="[0-9]{13,19}")

    shown = site.api("GET", place(sent), form="protobuf")

    assert "4111111111111111" not in json.dumps(shown)
    assert shown["body"]["isMasked"]


def varint(number: int) -> bytes:
    """A number as Protocol Buffers write it."""
    return b"" if number == 0 else bytes([number & 127 | (number > 127) << 7]) + varint(number >> 7)


def test_a_masked_property_stays_when_a_message_is_sent_again(
    site: Site, gantry: GantryCluster
) -> None:
    """People who cannot see it cannot lose it either."""
    message = Message("pay", b"x", properties={"pass": "word", "own": "1"}, tags="t", keys=["k"])
    sent = send_these(gantry.namesrv, message)[0]
    for what in ("pass", "TAGS", "KEYS"):
        site.api("POST", f"{BASE}/masking", topic="pay", kind="property", what=what)

    site.api("POST", f"{place(sent)}/resend", properties={"own": "2"}, tags="***", keys=["***"])
    for rule in site.api("GET", f"{BASE}/masking")["rules"]:
        site.api("DELETE", f"{BASE}/masking/{rule['id']}")

    row = searched(site, topic="pay")[0]
    assert (row["tags"], row["keys"]) == ("t", ["k"])
    at = f"{MESSAGES}/pay/{row['broker']}/{row['queueId']}/{row['offset']}"
    found = {each["name"]: each["value"] for each in site.api("GET", at)["properties"]}
    assert (found["pass"], found["own"]) == ("word", "2")


def test_a_body_whose_fields_cannot_be_found_is_withheld(site: Site, gantry: GantryCluster) -> None:
    """Also from the download."""
    sent = send_these(gantry.namesrv, Message("pay", b"card=4111"))[0]
    site.api("POST", f"{BASE}/masking", topic="pay", kind="path", what="card")

    assert site.api("GET", place(sent))["body"]["isWithheld"]
    assert "4111" not in site.ask("GET", f"/api/v1{place(sent)}").text
    assert site.ask("GET", f"/api/v1{place(sent)}/body").status == 400


def test_new_messages_are_polled(site: Site, gantry: GantryCluster) -> None:
    """From now on, with the filters of a search."""
    send_these(gantry.namesrv, Message("orders", b"before"))
    first = site.api("GET", f"{BASE}/new-messages", topic="orders", tags="a")
    send_these(
        gantry.namesrv, Message("orders", b"yes", tags="a"), Message("orders", b"no", tags="b")
    )

    second = site.api(
        "GET", f"{BASE}/new-messages", topic="orders", tags="a", cursor=first["cursor"]
    )
    third = site.api(
        "GET", f"{BASE}/new-messages", topic="orders", tags="a", cursor=second["cursor"]
    )

    assert (first["messages"], third["messages"]) == ([], [])
    assert previews(second["messages"]) == ["yes"]


def test_a_reader_that_is_far_behind_is_told_what_it_missed(
    site: Site, gantry: GantryCluster
) -> None:
    """A page shows fifty a second, whatever a topic gets."""
    gantry.create_topic("orders")
    cursor = site.api("GET", f"{BASE}/new-messages", topic="orders")["cursor"]

    async def many() -> None:
        async with Producer(gantry.namesrv, group="test-producer") as producer:
            await producer.send_many([Message("orders", b"x") for _ in range(900)])

    asyncio.run(many())
    page = site.api("GET", f"{BASE}/new-messages", topic="orders", cursor=cursor)
    later = site.api("GET", f"{BASE}/new-messages", topic="orders", cursor=page["cursor"])

    assert len(page["messages"]) == 50
    assert page["skipped"] == 850
    assert later["messages"] == []


def test_a_tail_streams_events(site: Site, gantry: GantryCluster) -> None:
    """Until the reader leaves."""
    gantry.create_topic("orders")
    link = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=30)
    link.request("GET", f"/api/v1{BASE}/tail?topic=orders&text=yes")
    answer = link.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.readline() == b": tail\n"
    send_these(gantry.namesrv, Message("orders", b"no"), Message("orders", b"yes"))

    lines = [answer.readline() for _ in range(3)]
    link.close()

    assert lines[1] == b"event: message\n"
    assert json.loads(lines[2].removeprefix(b"data: "))["preview"] == "yes"


def test_tails_are_counted(
    site: Site, gantry: GantryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that not all brokers are busy with readers; one that leaves makes room."""
    monkeypatch.setattr(messages, "TAILS_MAX", 1)
    monkeypatch.setattr(messages, "KEEP_ALIVE_ROUNDS", 1)
    gantry.create_topic("orders")
    link = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=30)
    link.request("GET", f"/api/v1{BASE}/tail?topic=orders")
    answer = link.getresponse()
    assert answer.readline() == b": tail\n"

    refused = site.call("GET", f"{BASE}/tail", topic="orders")
    answer.close()
    link.close()

    assert (refused.status, "1 tails run already" in refused.text) == (429, True)

    def is_free() -> bool:
        other = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=30)
        other.request("GET", f"/api/v1{BASE}/tail?topic=orders")
        status = other.getresponse().status
        other.close()
        return status == 200

    assert until(is_free)


def test_a_reader_may_look_and_not_change(gantry: GantryCluster) -> None:
    """Also not rules, filters and schemas."""
    sent = send_these(gantry.namesrv, Message("orders", b"x"))[0]
    with console(gantry, is_read_only=True) as site:
        assert previews(searched(site, topic="orders")) == ["x"]
        for method, path, question in (
            ("POST", f"{place(sent)}/resend", {}),
            ("POST", f"{BASE}/filters", {"name": "x", "topic": "t", "query": ""}),
            ("POST", f"{BASE}/masking", {"topic": "t", "kind": "path", "what": "a"}),
            ("POST", f"{BASE}/schemas", {"topic": "t", "form": "avro", "text": '"int"'}),
        ):
            assert site.call(method, path, **question).status == 403
