"""Dead letters through the API: causes, one beside a good message, resends as jobs, exports."""

import asyncio
import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from consolekit import NAME, Site, console, until
from lettersending import let_die

from gantrymq import Consumer, Message, Producer
from gantrymq.testing.threaded import GantryCluster

BASE = f"/clusters/{NAME}"
GROUP = f"{BASE}/groups/g"
LETTERS = f"{GROUP}/dead-letters"


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    with console(gantry) as site:
        yield site


def job(site: Site, number: str) -> dict[str, Any]:
    return dict(site.api("GET", f"{BASE}/jobs/{number}"))


def ended(site: Site, number: str) -> dict[str, Any]:
    return dict(until(lambda: (found := job(site, number))["state"] != "running" and found))


def dead_ids(site: Site) -> list[str]:
    return [each["deadId"] for each in site.api("GET", LETTERS)["letters"]]


def retried(site: Site) -> list[str]:
    """The bodies in the group's retry topic."""
    page = site.api("GET", f"{BASE}/messages", topic="%RETRY%g", order="oldest")
    return [each["preview"] for each in page["messages"]]


def test_groups_and_causes_are_counted(site: Site, gantry: GantryCluster) -> None:
    """With examples, first and last time, and the topics they came from."""
    let_die(gantry, Message("orders", b"one"), Message("orders", b"two"), Message("o2", b"key"))

    (group,) = site.api("GET", f"{BASE}/dead-letters")["groups"]
    causes = site.api("GET", f"{GROUP}/dead-letter-causes")

    assert (group["group"], group["letters"]) == ("g", 3)
    assert causes["isComplete"]
    first, second = causes["causes"]
    assert (first["error"], first["count"], first["topics"]) == ("ValueError", 2, {"orders": 2})
    assert (second["error"], second["count"]) == ("KeyError", 1)
    assert first["firstMs"] <= first["lastMs"]
    of_cause = site.api("GET", LETTERS, fingerprint=first["fingerprint"])["letters"]
    assert first["example"] in [each["deadId"] for each in of_cause]
    assert {each["row"]["preview"] for each in of_cause} == {"one", "two"}
    assert site.api("GET", f"{BASE}/dead-letters", search="nothing")["count"] == 0


def test_reasons_that_differ_in_numbers_are_one_cause(site: Site, gantry: GantryCluster) -> None:
    """Its fingerprint chooses the letters, its text is that of the newest."""

    async def run() -> None:
        async with Producer(gantry.namesrv, group="shop") as producer:
            for number in (1, 2, 3):
                await producer.send(Message("orders", b"%d" % number))
        async with Consumer(gantry.namesrv, group="g", start="first") as consumer:
            consumer.subscribe("orders")
            for _ in range(3):
                message = await anext(consumer)
                number = int(message.body)
                why = "stock is closed" if number == 2 else f"price of order {number} is negative"
                await message.dead(reason=why)

    asyncio.run(run())
    until(lambda: len(site.api("GET", LETTERS)["letters"]) >= 3)

    first, second = site.api("GET", f"{GROUP}/dead-letter-causes")["causes"]

    assert (first["count"], second["count"]) == (2, 1)
    assert first["reason"].startswith("price of order ")
    chosen = site.api("GET", LETTERS, fingerprint=first["fingerprint"])["letters"]
    assert {each["row"]["preview"] for each in chosen} == {"1", "3"}


def test_letters_are_paged(site: Site, gantry: GantryCluster) -> None:
    """Each once, with filters."""
    let_die(
        gantry, *(Message("orders", b"%d" % number, keys=[f"k{number}"]) for number in range(5))
    )

    first = site.api("GET", LETTERS, limit=3)
    rest = site.api("GET", LETTERS, limit=3, after=first["after"])

    seen = [each["row"]["preview"] for each in first["letters"] + rest["letters"]]
    assert sorted(seen) == list("01234")
    assert rest["after"] is None
    assert len(site.api("GET", LETTERS, key="k3")["letters"]) == 1
    assert site.api("GET", LETTERS, topic="other")["letters"] == []
    assert site.call("GET", LETTERS, after="x").status == 409


def test_a_letter_beside_a_message_that_went_well(site: Site, gantry: GantryCluster) -> None:
    """What differs comes first."""
    gantry.create_topic("orders", queues=1)
    let_die(
        gantry,
        Message("orders", b'{"state": "ok", "amount": 5}', tags="t", properties={"shop": "a"}),
        Message("orders", b'{"state": "bad", "amount": 5}', tags="t", properties={"shop": "b"}),
    )

    found = site.api("GET", f"{LETTERS}/{dead_ids(site)[0]}")

    assert json.loads(found["good"]["body"]["text"])["state"] == "ok"
    rows = {row["name"]: row for row in found["differences"]}
    assert (rows["body.state"]["dead"], rows["body.state"]["good"]) == ('"bad"', '"ok"')
    assert rows["property shop"]["isSame"] is False
    assert rows["body.amount"]["isSame"] is True
    order = [row["isSame"] for row in found["differences"]]
    assert order == sorted(order)
    assert found["letter"]["error"] == "ValueError"


def test_without_a_good_message_the_letter_stands_alone(site: Site, gantry: GantryCluster) -> None:
    """And an id that is no letter's is not there."""
    let_die(gantry, Message("orders", b"bad"))

    assert site.api("GET", f"{LETTERS}/{dead_ids(site)[0]}")["good"] is None
    assert site.call("GET", f"{LETTERS}/nothing").status in (404, 409)


def test_one_letter_is_edited_and_sent_again_once(site: Site, gantry: GantryCluster) -> None:
    """A second time only if that is asked for."""
    let_die(
        gantry, Message("orders", b"bad", tags="t", keys=["k"], properties={"a": "1", "b": "2"})
    )
    at = f"{LETTERS}/{dead_ids(site)[0]}"

    site.api(
        "POST", f"{at}/resend", to="topic", body="good", tags="u", keys=["x"], properties={"c": "3"}
    )

    found = site.api("GET", f"{BASE}/message-keys", topic="orders", key="x")["messages"]
    assert [(each["preview"], each["tags"]) for each in found] == [("good", "u")]
    row = found[0]
    whole = site.api(
        "GET", f"{BASE}/messages/orders/{row['broker']}/{row['queueId']}/{row['offset']}"
    )
    own = {each["name"]: each["value"] for each in whole["properties"] if not each["isSystem"]}
    assert own == {"c": "3"}
    assert site.call("POST", f"{at}/resend", to="topic").status == 400
    assert site.call("POST", f"{at}/resend", to="topic", again=True).status == 200
    assert site.call("POST", f"{at}/resend", properties={"UNIQ_KEY": "x"}, again=True).status == 400


def test_all_are_sent_again_as_a_job(site: Site, gantry: GantryCluster) -> None:
    """Each once, also when the job is begun a second time; begin and end are in the audit trail."""
    let_die(gantry, *(Message("orders", b"bad-%d" % number) for number in range(4)))

    first = site.api("POST", f"{LETTERS}/resend", rate=1000)
    done = ended(site, first["job"])
    second = ended(site, site.api("POST", f"{LETTERS}/resend", rate=1000)["job"])

    assert (done["state"], done["done"], done["total"]) == ("done", 4, 4)
    assert done["text"].startswith("4 sent again")
    assert second["text"].startswith("0 sent again, 4 skipped")
    assert sorted(retried(site)) == [f"bad-{number}" for number in range(4)]
    acts = [each["act"] for each in site.api("GET", "/audit")["entries"]]
    assert acts.count("resend_letters") == acts.count("resend_letters_ended") == 2


def test_chosen_letters_are_sent_in_stages_and_the_rest_is_left(
    site: Site, gantry: GantryCluster
) -> None:
    """After a stage the job waits; who stops it there is told how many are untouched."""
    let_die(gantry, *(Message("orders", b"bad-%d" % number) for number in range(6)))
    begun = site.api("POST", f"{LETTERS}/resend", ids=dead_ids(site)[:5], stage=2, rate=1000)
    number = begun["job"]

    until(lambda: any("stage" in line for line in job(site, number)["lines"]))
    assert len(retried(site)) == 2
    site.api("POST", f"{BASE}/resend-jobs/{number}/go-on")
    until(lambda: job(site, number)["done"] == 4)
    site.api("POST", f"{BASE}/resend-jobs/{number}/pause")
    site.api("DELETE", f"{BASE}/jobs/{number}")

    found = job(site, number)
    assert found["state"] == "stopped"
    assert found["lines"][-1].startswith("4 sent again")
    assert found["lines"][-1].endswith("1 left untouched")
    assert len(retried(site)) == 4
    assert site.call("POST", f"{BASE}/resend-jobs/{number}/go-on").status == 404


def test_a_letter_that_is_named_twice_is_sent_once(site: Site, gantry: GantryCluster) -> None:
    """By its dead id and its message id, also where letters may be sent once more."""
    let_die(gantry, Message("orders", b"bad"))
    (letter,) = site.api("GET", LETTERS)["letters"]
    ids = [letter["deadId"], letter["row"]["msgId"], letter["deadId"]]

    done = ended(site, site.api("POST", f"{LETTERS}/resend", ids=ids, again=True)["job"])

    assert (done["state"], done["done"], done["total"]) == ("done", 1, 1)
    assert done["text"].startswith("1 sent again")
    assert retried(site) == ["bad"]


@pytest.mark.parametrize("format_", ["csv", "json", "jsonl"])
def test_letters_are_exported(site: Site, gantry: GantryCluster, format_: str) -> None:
    """In three forms; a cell is never a formula, and what is masked is in none."""
    let_die(gantry, Message("orders", b"=1+1", keys=["k"]), Message("orders", b"secret-77"))
    site.api("POST", f"{BASE}/masking", topic="orders", kind="pattern", what="secret-[0-9]+")

    reply = site.ask("GET", f"/api/v1{GROUP}/dead-letter-export?format={format_}")

    assert reply.headers["content-disposition"].endswith(f'dead-letters-g.{format_}"')
    assert "secret-77" not in reply.text
    if format_ == "csv":
        rows = list(csv.DictReader(io.StringIO(reply.text)))
        assert {row["body"] for row in rows} == {"'=1+1", "*********"}
    elif format_ == "json":
        assert len(json.loads(reply.text)) == 2
    else:
        assert {json.loads(line)["error"] for line in reply.text.splitlines()} == {"ValueError"}


def test_an_export_of_nothing_is_whole(site: Site, gantry: GantryCluster) -> None:
    """Its JSON is an empty list."""
    assert site.ask("GET", f"/api/v1{GROUP}/dead-letter-export?format=json").json() == []


def test_notes_are_kept_on_causes_and_letters(site: Site, gantry: GantryCluster) -> None:
    """With who wrote them."""
    let_die(gantry, Message("orders", b"bad"))
    (cause,) = site.api("GET", f"{GROUP}/dead-letter-causes")["causes"]

    site.api("POST", f"{GROUP}/dead-letter-notes", about=cause["fingerprint"], text="wait for <b>")

    (note,) = site.api("GET", f"{GROUP}/dead-letter-notes")["notes"]
    assert (note["text"], note["user"]) == ("wait for <b>", "local")
    assert site.api("GET", f"{GROUP}/dead-letter-causes")["causes"][0]["notes"] == 1
    site.api("DELETE", f"{GROUP}/dead-letter-notes/{note['id']}")
    assert site.call("DELETE", f"{GROUP}/dead-letter-notes/{note['id']}").status == 404


def test_errors_of_letters_are_masked(site: Site, gantry: GantryCluster) -> None:
    """The text of an exception often repeats the body."""
    let_die(gantry, Message("orders", b"secret-77"))
    site.api("POST", f"{BASE}/masking", topic="orders", kind="pattern", what="secret-[0-9]+")

    for path in (LETTERS, f"{GROUP}/dead-letter-causes", f"{LETTERS}/{dead_ids(site)[0]}"):
        assert "secret-77" not in json.dumps(site.api("GET", path)), path
    history = f"{BASE}/message-ids/{site.api('GET', LETTERS)['letters'][0]['row']['msgId']}/history"
    assert "secret-77" not in json.dumps(site.api("GET", history, topic="orders"))


def test_errors_do_not_repeat_a_field_that_is_masked_by_its_path(
    site: Site, gantry: GantryCluster
) -> None:
    """An exception may quote the whole body: what it said is hidden, its type is not."""
    let_die(gantry, Message("orders", b'{"card": "4711-x", "state": "bad"}'))
    site.api("POST", f"{BASE}/masking", topic="orders", kind="path", what="card")

    letter = dead_ids(site)[0]
    row = site.api("GET", LETTERS)["letters"][0]
    history = f"{BASE}/message-ids/{row['row']['msgId']}/history"
    for path in (LETTERS, f"{GROUP}/dead-letter-causes", f"{LETTERS}/{letter}"):
        assert "4711-x" not in json.dumps(site.api("GET", path)), path
    assert "4711-x" not in json.dumps(site.api("GET", history, topic="orders"))
    export = site.ask("GET", f"/api/v1{GROUP}/dead-letter-export?format=csv").text
    assert "4711-x" not in export
    place = f"{row['row']['topic'].replace('%', '%25')}/{row['row']['broker']}"
    whole = f"{BASE}/messages/{place}/{row['row']['queueId']}/{row['row']['offset']}"
    assert "4711-x" not in json.dumps(site.api("GET", whole))
    assert (row["error"], row["text"]) == ("ValueError", "***")


def test_masked_parts_of_a_letter_stay_and_cannot_be_searched(
    site: Site, gantry: GantryCluster
) -> None:
    """A form has stars for them, which must not be sent; nor does a search tell a key."""
    let_die(gantry, Message("orders", b"a", keys=["key-7"], tags="t", properties={"pass": "word"}))
    for what in ("KEYS", "TAGS", "pass"):
        site.api("POST", f"{BASE}/masking", topic="orders", kind="property", what=what)
    letter = site.api("GET", LETTERS)["letters"][0]

    assert site.api("GET", LETTERS, key="key-7")["letters"] == []
    assert site.api("GET", f"{GROUP}/dead-letter-causes", key="key-7")["causes"] == []
    assert "msgId" not in site.ask("GET", f"/api/v1{GROUP}/dead-letter-export?key=key-7").text
    assert len(site.api("GET", LETTERS, key=letter["row"]["msgId"])["letters"]) == 1
    site.api("POST", f"{LETTERS}/{letter['deadId']}/resend", tags="***", keys=["***"],
             properties={"pass": "***", "more": "1"})  # fmt: skip
    for rule in site.api("GET", f"{BASE}/masking")["rules"]:
        site.api("DELETE", f"{BASE}/masking/{rule['id']}")

    row = site.api("GET", f"{BASE}/messages", topic="%RETRY%g")["messages"][0]
    at = f"%25RETRY%25g/{row['broker']}/{row['queueId']}/{row['offset']}"
    found = {
        each["name"]: each["value"]
        for each in site.api("GET", f"{BASE}/messages/{at}")["properties"]
    }
    assert (found["KEYS"], found["TAGS"], found["pass"], found["more"]) == (
        "key-7",
        "t",
        "word",
        "1",
    )


def test_a_cause_shows_its_newest_letter_behind_the_rules_of_that_one(
    site: Site, gantry: GantryCluster
) -> None:
    """Letters of several topics may have one cause."""
    for topic, body in (
        ("orders", b"secret-77"),
        ("plain", b"secret-78"),
        ("orders", b"secret-79"),
    ):
        let_die(gantry, Message(topic, body))
    site.api("POST", f"{BASE}/masking", topic="orders", kind="pattern", what="secret-[0-9]+")

    text = json.dumps(site.api("GET", f"{GROUP}/dead-letter-causes"))

    assert "secret-77" not in text
    assert "secret-79" not in text


def test_a_reader_sends_nothing_again(gantry: GantryCluster) -> None:
    """Neither one nor all."""
    let_die(gantry, Message("orders", b"bad"))
    with console(gantry, is_read_only=True) as site:
        letter = dead_ids(site)[0]
        assert site.call("POST", f"{LETTERS}/{letter}/resend").status == 403
        assert site.call("POST", f"{LETTERS}/resend").status == 403
