"""Pages about messages: search, tail, one message, masking; and nothing of a message is HTML."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from consolekit import NAME, Site, console
from consumekit import send_these

from gantrymq import Message, SendResult
from gantrymq.client.admin.messages.message_history import _ORDER as EVENTS
from gantrymq.console.texts import Texts
from gantrymq.testing.threaded import GantryCluster

PAGES = f"/c/{NAME}"
NASTY = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{7*7}}'
"""What must never be in a page as it is."""


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    with console(gantry) as site:
        yield site


def place(result: SendResult) -> str:
    queue = result.queue
    return f"{PAGES}/messages/{queue.topic}/{queue.broker_name}/{queue.queue_id}/{result.offset}"


def test_every_event_of_a_history_has_a_word_in_both_languages() -> None:
    """Those of a history are in English, for programs; pages translate them."""
    for event in EVENTS:
        assert Texts("en").word("event", event) == event
        assert Texts("zh").word("event", event) != event


def test_the_search_page_shows_rows_and_how_far_it_looked(
    site: Site, gantry: GantryCluster
) -> None:
    """With a link to each message, and one that goes on."""
    send_these(gantry.namesrv, *(Message("orders", b"body-%d" % number) for number in range(30)))

    assert "<form" in site.page(f"{PAGES}/messages")
    page = site.page(f"{PAGES}/messages?topic=orders&limit=10")
    assert len(set(re.findall(r"body-\d+", page))) == 10
    assert "Looked at" in page
    following = re.search(r'class="button plain go-on" href="([^"]+)"', page)
    assert following is not None
    seen = set(re.findall(r"body-\d+", page))
    rest = site.page(following.group(1).replace("&amp;", "&"))
    assert seen.isdisjoint(re.findall(r"body-\d+", rest))
    part = re.search(r'hx-get="([^"]+message-rows[^"]+)"', page)
    assert part is not None
    assert "<html" not in site.page(part.group(1).replace("&amp;", "&"))


def test_a_search_that_cannot_be_made_says_why_beside_its_form(site: Site) -> None:
    """The fields stay as they were."""
    page = site.page(f"{PAGES}/messages?topic=missing&sql=a+%3E")

    assert 'value="missing"' in page
    assert "said error" in page


def test_pages_by_id_and_by_key(site: Site, gantry: GantryCluster) -> None:
    """Both kinds of id; nothing found is said, too."""
    sent = send_these(gantry.namesrv, Message("orders", b"the-body", keys=["k-1"]))[0]

    assert "the-body" in site.page(f"{PAGES}/messages?by=id&id={sent.msg_id}&topic=orders")
    assert "the-body" in site.page(f"{PAGES}/messages?by=id&id={sent.offset_msg_id}")
    assert "the-body" in site.page(f"{PAGES}/messages?by=key&topic=orders&key=k-1")
    assert "No message" in site.page(f"{PAGES}/messages?by=key&topic=orders&key=k-2")


def test_times_are_those_of_the_reader(site: Site, gantry: GantryCluster) -> None:
    """A moment of the form is in the zone that the browser says."""
    send_these(gantry.namesrv, Message("orders", b"the-body"))
    for query, is_there in (
        ("since=1h", True),
        ("since=between&from=2020-01-01T00:00", True),
        ("since=between&until=2020-01-01T00:00:00&zone=120", False),
    ):
        page = site.page(f"{PAGES}/messages?topic=orders&{query}")
        assert ("the-body" in page) is is_there, query
    assert "2026-11-18T09:30" in site.page(f"{PAGES}/messages?topic=o&since=between&from=nonsense")


def test_a_message_page_explains_its_properties_and_has_its_history(
    site: Site, gantry: GantryCluster
) -> None:
    """The history is a picture and a table."""
    sent = send_these(
        gantry.namesrv, Message("orders", b'{"a":1}', tags="t", properties={"shop": "x"})
    )[0]

    page = site.page(place(sent))
    history = site.page(f"{PAGES}/message-history/{sent.msg_id}?topic=orders")

    assert "the tag that subscriptions filter by" in page
    assert "&#34;a&#34;: 1" in page
    assert "61 22 3a" in site.page(f"{place(sent)}?form=hex")
    assert "<svg" in history
    assert history.count("<circle") == 2
    chinese = site.ask("GET", f"{PAGES}/message-history/{sent.msg_id}?topic=orders",
                       accept_language="zh-CN").text  # fmt: skip
    assert all(word in chinese for word in ("产生", "已存储"))
    assert site.ask("GET", f"{PAGES}/messages/orders/broker-a/0/99").status == 404


def test_a_message_is_edited_and_sent_again(site: Site, gantry: GantryCluster) -> None:
    """The form changes what it shows; line ends stay as they were."""
    sent = send_these(
        gantry.namesrv, Message("orders", b"a\nb", tags="t", properties={"shop": "x"})
    )[0]

    reply = site.act(
        f"{place(sent)}/resend",
        isEdited="true", to="orders", body="a\r\nc", keys="k-1 k-2", properties="shop=y",
    )  # fmt: skip

    assert reply.status == 200, reply.text
    found = site.api("GET", f"/clusters/{NAME}/message-keys", topic="orders", key="k-2")
    assert found["messages"][0]["preview"] == "a c"
    assert found["messages"][0]["tags"] is None


def test_filters_rules_and_schemas_have_their_forms(site: Site, gantry: GantryCluster) -> None:
    """Add, see, remove; and a wrong one is refused in a sentence."""
    sent = send_these(gantry.namesrv, Message("pay", b'{"card":"4711-x"}'))[0]
    saved = site.act(f"{PAGES}/filters/save", name="mine", topic="pay", query="topic=pay&by=time")
    added = site.act(f"{PAGES}/masking/add", topic="pay", kind="path", what="card")
    wrong = site.act(f"{PAGES}/masking/add", topic="pay", kind="pattern", what="(")
    schema = site.act(f"{PAGES}/schemas/add", topic="other", form="avro", text='"int"')

    assert (saved.status, added.status, wrong.status, schema.status) == (200, 200, 400, 200)
    assert 'href="/c/test/messages?topic=pay&amp;by=time"' in site.page(f"{PAGES}/messages")
    rules = site.page(f"{PAGES}/masking")
    assert "card" in rules
    assert "other" in rules
    for path in (place(sent), f"{PAGES}/messages?topic=pay"):
        assert "4711-x" not in site.page(path)
    assert site.act(f"{PAGES}/masking/remove", id="1").status == 200
    assert site.act(f"{PAGES}/schemas/remove", id="1").status == 200
    assert site.act(f"{PAGES}/filters/remove", name="mine").status == 200
    assert "4711-x" in site.page(place(sent))


def test_the_tail_page_polls_for_rows(site: Site, gantry: GantryCluster) -> None:
    """Each part asks for the next one."""
    gantry.create_topic("orders")
    page = site.page(f"{PAGES}/tail?topic=orders")
    address = re.search(r'hx-get="([^"]+tail-rows[^"]+)"', page)
    assert address is not None
    first = site.page(address.group(1))
    send_these(gantry.namesrv, Message("orders", b"fresh"))
    following = re.search(r'hx-get="([^"]+)" hx-trigger="load delay', first)
    assert following is not None

    assert "fresh" in site.page(following.group(1).replace("&amp;", "&"))
    assert "said error" in site.page(f"{PAGES}/tail-rows?topic=missing")


def test_nothing_of_a_message_is_html(site: Site, gantry: GantryCluster) -> None:
    """Bodies, keys, tags, properties, and every field of a form come out as text."""
    key = NASTY.replace(" ", "_")
    sent = send_these(
        gantry.namesrv,
        Message("orders", NASTY.encode(), tags=NASTY, keys=[key], properties={NASTY: NASTY}),
        Message("orders", b'{"%s": "%s"}' % ((NASTY.replace('"', "'").encode(),) * 2)),
    )
    site.act(f"{PAGES}/filters/save", name=NASTY[:99], topic=NASTY, query=NASTY)
    site.act(f"{PAGES}/masking/add", topic=NASTY, kind="property", what=NASTY)
    nasty = quote(NASTY)
    cursor = site.api("GET", f"/clusters/{NAME}/new-messages", topic="orders")["cursor"]
    send_these(gantry.namesrv, Message("orders", NASTY.encode(), tags=NASTY, keys=[key]))
    for path in (
        f"{PAGES}/messages?topic=orders",
        f"{PAGES}/messages?topic={nasty}&sql={nasty}&text={nasty}&tags={nasty}&from={nasty}",
        f"{PAGES}/messages?by=id&id={nasty}&topic={nasty}",
        f"{PAGES}/messages?by=key&key={quote(key)}&topic=orders",
        f"{PAGES}/message-rows?topic=orders&text={nasty}",
        f"{PAGES}/message-rows?topic={nasty}",
        f"{PAGES}/tail?topic={nasty}&text={nasty}",
        f"{PAGES}/tail-rows?topic=orders&cursor={cursor}",
        f"{PAGES}/tail-rows?topic={nasty}",
        *(place(each) for each in sent),
        f"{place(sent[0])}?form=text&messageType={nasty}",
        f"{place(sent[0])}?form=avro&schema={nasty}",
        f"{PAGES}/message-history/{sent[0].msg_id}?topic=orders",
        f"{PAGES}/message-history/{nasty.replace('/', '%2F')}",
        f"{PAGES}/masking",
        f"{PAGES}/messages/{nasty.replace('/', '%2F')}/b/0/0",
    ):
        text = site.ask("GET", path).text
        assert "<script>alert" not in text, path
        assert "<img" not in text.replace('<img src="/static', ""), path
        assert "49" not in re.findall(r"alert\(2\)&gt;(..)", text), path
