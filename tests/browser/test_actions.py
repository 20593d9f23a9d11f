"""What people do on the pages, in Chromium: each act is seen to happen."""

import json
import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from routes import message
from world import RAFT, World, process, run, said

from conftest import Watched, watched
from gantrymq import Message, Producer

ADDRESS = re.compile(r"console (http\S+)")


def submit(page: Page, button: str) -> str:
    """Press a button of a form; the sentence that the page says then."""
    page.evaluate("document.getElementById('said').replaceChildren()")
    page.get_by_role("button", name=button, exact=True).first.click()
    sentence = page.locator("#said .said")
    sentence.wait_for()
    return sentence.inner_text()


def unfold(page: Page, summary: str) -> None:
    """Open a part that is folded."""
    page.locator("summary", has_text=summary).first.click()


def send(namesrv: str, *messages: Message) -> None:
    async def work() -> None:
        async with Producer(namesrv, group="shop") as producer:
            for each in messages:
                await producer.send(each)

    run(work())


def test_a_topic_is_made_used_and_deleted(visitor: Watched, world: World) -> None:
    """
    Create a topic, send a message with its form, find it, edit it and send it again, widen the
    topic, and delete it with its name typed.
    """
    page = visitor.open(world.page("/new-topic", RAFT))
    page.get_by_label("Name", exact=True).fill("invoices")
    page.get_by_label("Read queues").fill("2")
    page.get_by_label("Write queues").fill("2")
    assert "invoices" in submit(page, "Create")

    page = visitor.open(world.page("/topics/invoices", RAFT))
    unfold(page, "Send a message")
    page.get_by_label("Body").fill('{"invoice": 7}')
    page.get_by_label("Keys").fill("invoice-7")
    assert "is in invoices@RaftNode00" in submit(page, "Send")

    page = visitor.open(world.page("/messages?by=key&topic=invoices&key=invoice-7", RAFT))
    page.locator("table.messages tbody a").first.click()
    visitor.settle()
    expect(page.locator("pre").first).to_contain_text('"invoice": 7')
    unfold(page, "Edit and send again")
    page.locator("textarea[name=body]").fill('{"invoice": 8}')
    submit(page, "Send as a new message")
    page = visitor.open(world.page("/messages?topic=invoices", RAFT))
    expect(page.locator("table.messages")).to_contain_text('"invoice": 8')

    page = visitor.open(world.page("/topics/invoices", RAFT))
    unfold(page, "Delete")
    page.get_by_label("to confirm").fill("something else")
    assert "invoices" in submit(page, "Delete the topic")
    assert page.locator("#said .error").count()
    page.get_by_label("to confirm").fill("invoices")
    page.get_by_role("button", name="Delete the topic").click()
    page.wait_for_url("**/topics")
    page = visitor.open(world.page("/topics?search=invoices", RAFT))
    assert page.locator("tbody a", has_text="invoices").count() == 0
    visitor.faults = [each for each in visitor.faults if "status of 400" not in each]


def test_a_group_is_paused_reset_and_changed(visitor: Watched, world: World) -> None:
    """
    Pause and resume a group, look at what a reset would do, do it, and change a setting.
    """
    page = visitor.open(world.page("/groups/billing"))
    submit(page, "Pause consumption")
    page = visitor.open(world.page("/groups/billing"))
    expect(page.locator("main")).to_contain_text("paused")
    submit(page, "Resume consumption")

    page = visitor.open(world.page("/groups/billing"))
    unfold(page, "Reset")
    reset = page.locator("form[action$='/reset']")
    reset.locator("input[name=topic]").fill("orders")
    reset.get_by_role("button", name="Preview").click()
    expect(page.locator("#reset-plan table")).to_contain_text("broker-a:0")
    submit(page, "Reset")
    unfold(page, "Change settings")
    page.locator("input[name=retryMaxTimes]").fill("5")
    submit(page, "Save")
    page = visitor.open(world.page("/groups/billing"))
    row = page.locator("tr", has=page.locator("small", has_text="retryMaxTimes"))
    expect(row).to_contain_text("5")


def test_a_dead_letter_is_mended_and_sent_again(visitor: Watched, world: World) -> None:
    """
    Letters are grouped by cause; one is edited and sent again, the others at a rate as a job, and
    all are exported.
    """
    page = visitor.open(world.page("/letters/billing"))
    expect(page.locator("main")).to_contain_text("CardDeclined")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert "CardDeclined" in Path(download.value.path()).read_text()

    page.locator("table.messages tbody a").first.click()
    visitor.settle()
    expect(page.locator("main")).to_contain_text("One that went well")
    unfold(page, "Edit and send again")
    page.locator("textarea[name=body]").fill('{"order": "mended"}')
    page.locator("select[name=to]").select_option("topic")
    submit(page, "Send this letter again")
    page = visitor.open(world.page("/messages?topic=orders&text=mended"))
    expect(page.locator("table.messages")).to_contain_text("mended")

    page = visitor.open(world.page("/letters/billing"))
    page.locator("input[name=rate]").fill("1000")
    submit(page, "Send marked or all again")
    expect(page.locator("#jobs")).to_contain_text("done", timeout=15_000)


def test_a_masked_field_is_seen_nowhere(visitor: Watched, world: World) -> None:
    """
    A rule hides a field from the message, its raw body and the list; without the rule it is back.
    """
    page = visitor.open(world.page("/masking"))
    page.locator("form[action$='/masking/add'] input[name=topic]").fill("orders")
    page.locator("input[name=what]").fill("price.amount")
    submit(page, "Add rule")
    page = visitor.open(message(world, "a book"))
    expect(page.locator("pre").first).to_contain_text('"item"')
    shown = page.locator("pre").first.inner_text()
    assert "***" in shown or "masked" in page.locator("main").inner_text()
    assert not re.search(r'"amount": \d', shown)
    page = visitor.open(world.page("/masking"))
    page.get_by_role("button", name="Delete price.amount").click()
    page.locator("#said .said").wait_for()
    page = visitor.open(message(world, "a book"))
    expect(page.locator("pre").first).to_contain_text('"amount": ')


def test_the_tail_shows_what_arrives(visitor: Watched, world: World) -> None:
    """
    A message that is sent while somebody looks appears without a click, if the filter lets it.
    """
    page = visitor.open(world.page("/tail?topic=reminders&text=now"))
    send(world.pair, Message("reminders", "not this"), Message("reminders", "now this"))
    table = page.locator("table.messages")
    expect(table).to_contain_text("now this", timeout=15_000)
    assert "not this" not in table.inner_text()


def test_a_waiting_message_is_recalled(visitor: Watched, world: World) -> None:
    """
    What waits for its time is listed until when, and can be taken back.
    """
    send(world.pair, Message("reminders", "recall me", delay=7200, keys=("recall-me",)))
    page = visitor.open(world.page("/waiting?topic=reminders"))
    row = page.locator("tr", has_text="recall-me")
    row.get_by_role("button").click()
    page.locator("#said .ok").wait_for()
    page = visitor.open(world.page("/waiting?topic=reminders"))
    assert page.locator("tr", has_text="recall-me").count() == 0


def test_a_filter_is_kept(visitor: Watched, world: World) -> None:
    """
    A search is saved under a name, found again as a link, and removed.
    """
    page = visitor.open(world.page("/messages?topic=orders&tags=paid"))
    page.locator("form[action$='/filters/save'] input[name=name]").fill("paid ones")
    submit(page, "Save filter")
    page = visitor.open(world.page("/messages"))
    page.get_by_role("link", name="paid ones").click()
    visitor.settle()
    assert "tags=paid" in page.url
    page.get_by_role("button", name=re.compile("paid ones")).click()
    page.locator("#said .ok").wait_for()


def test_keys_themes_and_languages(visitor: Watched, world: World) -> None:
    """
    "/" goes to the search field, the theme is remembered, and the language is chosen once.
    """
    page = visitor.open(world.page("/topics"))
    page.keyboard.press("/")
    assert "search" == page.evaluate("document.activeElement.type")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Light or dark").click()
    visitor.open(world.page("/groups"))
    assert "dark" == page.evaluate("document.documentElement.dataset.theme")
    page.get_by_role("link", name="中文").click()
    visitor.settle()
    expect(page.locator("body > nav")).to_contain_text("消费者组")
    page.locator("#cluster-choice").select_option(label=RAFT)
    page.wait_for_url(f"**/c/{RAFT}/**")


def test_people_log_in_and_out(chromium: Browser, world: World, tmp_path: Path) -> None:
    """
    With users the browser comes to the login first, then to the page that was asked for; a reader
    finds no form that changes anything.
    """
    from gantrymq.console.access.user import Role
    from gantrymq.console.access.users_file import UsersFile

    UsersFile(tmp_path / "users.json").put("bob", Role.READER, "bob's password")
    command = ("console", "--namesrv", f"pair={world.pair}", "--port", "0", "--data", tmp_path)
    with process(*command) as running, watched(chromium) as visitor:
        url = said(running, ADDRESS)
        page = visitor.open(f"{url}/c/pair/topics/orders")
        assert "/login" in page.url
        page.get_by_label("Name").fill("bob")
        page.get_by_label("Password").fill("wrong password")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("wrong")
        page.get_by_label("Password").fill("bob's password")
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/c/pair/topics/orders")
        assert page.locator("form[method=post]").count() == 1  # that of the logout
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        assert [] == [each for each in visitor.faults if "401" not in each]


def test_every_change_is_in_the_trail(visitor: Watched, world: World) -> None:
    """
    What was done on the pages stands in the audit trail, without bodies.
    """
    page = visitor.open(world.page("/new-group"))
    page.locator("input[name=group]").fill("auditors")
    submit(page, "Create")
    page = visitor.open(world.page("/access"))
    expect(page.locator("table")).to_contain_text("auditors")
    lines = (world.data / "audit.jsonl").read_text().splitlines()
    assert {"at_ms", "atMs"} & set(json.loads(lines[-1]))
