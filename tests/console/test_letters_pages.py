"""Pages about dead letters: groups, causes, side by side, resends, notes; and nothing is HTML."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from consolekit import NAME, Site, console, until
from lettersending import let_die

from gantrymq import Message
from gantrymq.testing.threaded import GantryCluster

PAGES = f"/c/{NAME}"
LETTERS = f"{PAGES}/letters/g"
NASTY = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{7*7}}'


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    with console(gantry) as site:
        yield site


def dead_ids(site: Site) -> list[str]:
    found = site.api("GET", f"/clusters/{NAME}/groups/g/dead-letters")
    return [each["deadId"] for each in found["letters"]]


def sent_again(site: Site, count: int) -> list[str]:
    """The bodies in the retry topic, once there are so many."""

    def found() -> list[str]:
        reply = site.call("GET", f"/clusters/{NAME}/messages", topic="%RETRY%g")
        bodies = [each["preview"] for each in reply.json().get("messages", [])]
        return bodies if len(bodies) >= count else []

    return until(found)


def test_groups_causes_and_letters_have_their_pages(site: Site, gantry: GantryCluster) -> None:
    """From a group to a cause to a letter beside a good message."""
    gantry.create_topic("orders", queues=1)
    let_die(
        gantry,
        Message("orders", b'{"state": "ok"}', tags="t"),
        Message("orders", b'{"state": "bad"}', tags="t"),
    )

    assert f'href="{LETTERS}"' in site.page(f"{PAGES}/letters")
    page = site.page(LETTERS)
    assert "ValueError" in page
    letter = site.page(f"{LETTERS}/{dead_ids(site)[0]}")
    assert "What differs" in letter
    assert "<code>body.state</code>" in letter
    assert "One that went well" in letter
    cause = re.search(r'href="([^"]+fingerprint=[^"]+)"', page)
    assert cause is not None
    assert "bad" in site.page(cause.group(1))
    assert "No letter is there" in site.page(f"{LETTERS}?topic=other")
    assert "No group has dead letters" in site.page(f"{PAGES}/letters?search=zzz")


def await_jobs(site: Site) -> None:
    """Wait until no job runs."""
    until(
        lambda: all(
            job["state"] != "running" for job in site.api("GET", f"/clusters/{NAME}/jobs")["jobs"]
        )
    )


def test_marked_letters_are_sent_again_from_the_page(site: Site, gantry: GantryCluster) -> None:
    """A page shows the job; without marks all chosen letters are meant."""
    let_die(gantry, *(Message("orders", b"bad-%d" % number) for number in range(3)))
    act = f"{PAGES}/letter-jobs/g/resend"

    first = site.act(act, ids=dead_ids(site)[:1], to="retry", rate="1000", stage="")
    assert first.status == 200, first.text
    assert len(sent_again(site, 1)) == 1
    await_jobs(site)  # a second one about the same group has to wait for it
    second = site.act(act, to="retry", rate="1000", key="")
    assert second.status == 200, second.text

    assert sorted(sent_again(site, 3)) == ["bad-0", "bad-1", "bad-2"]
    page = site.page(LETTERS)
    assert "send 1 letter of g again" in page
    assert "send all chosen letters of g again" in page


def test_a_job_in_stages_is_let_go_on_and_stopped(site: Site, gantry: GantryCluster) -> None:
    """By the buttons that the page shows while it waits."""
    let_die(gantry, *(Message("orders", b"bad-%d" % number) for number in range(4)))
    site.act(f"{PAGES}/letter-jobs/g/resend", to="retry", rate="1000", stage="1")
    sent_again(site, 1)
    found = until(lambda: re.search(r'action="([^"]+/go-on)"', site.page(LETTERS)))
    assert found is not None

    assert site.act(found.group(1)).status == 200
    sent_again(site, 2)
    waiting = until(lambda: "/go-on" in (page := site.page(LETTERS)) and page)
    assert "Stop, leave the rest" in waiting
    assert "What was sent is not taken back" in waiting
    assert site.act(found.group(1).replace("go-on", "stop")).status == 200
    assert "2 sent again, 0 skipped because they were before, 0 failed, 2 left untouched" in (
        site.page(LETTERS)
    )
    assert len(sent_again(site, 2)) == 2
    assert len(dead_ids(site)) == 4
    assert site.act(found.group(1).replace("go-on", "pause")).status == 404


def test_a_letter_is_edited_and_sent_again(site: Site, gantry: GantryCluster) -> None:
    """With another body, tag, keys and properties."""
    let_die(gantry, Message("orders", b"bad"))

    reply = site.act(
        f"{LETTERS}/{dead_ids(site)[0]}/resend",
        isEdited="true", body="good", tags="t", keys="k", properties="a=1", to="retry",
    )  # fmt: skip

    assert reply.status == 200, reply.text
    assert sent_again(site, 1) == ["good"]
    again = site.act(f"{LETTERS}/{dead_ids(site)[0]}/resend", to="retry")
    assert again.status == 400
    assert "again" in again.text


def test_notes_are_written_and_removed(site: Site, gantry: GantryCluster) -> None:
    """On the page of the group and of the letter."""
    let_die(gantry, Message("orders", b"bad"))
    letter = dead_ids(site)[0]

    site.act(f"{PAGES}/letter-notes/g/add", about=letter, text="ask the shop")

    assert "ask the shop" in site.page(f"{LETTERS}/{letter}")
    assert site.act(f"{PAGES}/letter-notes/g/remove", id="1").status == 200
    assert "ask the shop" not in site.page(f"{LETTERS}/{letter}")


def test_nothing_of_a_letter_is_html(site: Site, gantry: GantryCluster) -> None:
    """Bodies, keys, tags, properties, errors and notes come out as text."""
    key = NASTY.replace(" ", "_")
    let_die(gantry, Message("orders", b"ok"), Message(
        "orders", NASTY.encode(), tags=NASTY, keys=[key], properties={NASTY: NASTY}
    ))  # fmt: skip
    site.act(f"{PAGES}/letter-notes/g/add", about=NASTY, text=NASTY)
    nasty = quote(NASTY, safe="")
    for path in (
        f"{PAGES}/letters?search={nasty}",
        LETTERS,
        f"{LETTERS}?fingerprint={nasty}&topic={nasty}&key={nasty}&since=between&from={nasty}",
        f"{LETTERS}?after={nasty}",
        f"{LETTERS}/{dead_ids(site)[0]}",
        f"{LETTERS}/{nasty}",
        f"{PAGES}/letters/{nasty}",
    ):
        text = site.ask("GET", path).text
        assert "<script>alert" not in text, path
        assert "<img" not in text.replace('<img src="/static', ""), path
