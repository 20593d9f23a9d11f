"""What people do on the pages, in Chromium: each act is seen to happen."""

import json
import re
import time
from pathlib import Path

import pytest
from consumekit import member
from playwright.sync_api import Browser, Page, expect
from routes import DECLARED, message
from world import GUARDED, RAFT, World, process, run, said

from conftest import ACTS, Watched, watched
from gantrymq import Admin, Decision, Message, Producer, TopicConfig
from gantrymq.model import WRITE
from gantrymq.sync import Producer as SyncProducer

pytestmark = pytest.mark.timeout(300)

LONG = 200_000
"""Messages that no search has looked at within the time of its first part."""
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


def test_a_group_is_made_gets_progress_and_goes(visitor: Watched, world: World) -> None:
    """
    Create a group, give it the progress of another one, and delete it with its name typed.
    """
    page = visitor.open(world.page("/new-group"))
    page.locator("input[name=group]").fill("copyists")
    submit(page, "Create")
    page = visitor.open(world.page("/groups/billing"))
    unfold(page, "Copy progress")
    clone = page.locator("form[action$='/clone']")
    clone.locator("input[name=topic]").fill("orders")
    clone.locator("input[name=target]").fill("copyists")
    submit(page, "Copy")
    page = visitor.open(world.page("/groups/copyists"))
    expect(page.locator("#state")).to_contain_text("broker-a:0")
    unfold(page, "Delete")
    page.get_by_label("to confirm").fill("copyists")
    page.get_by_role("button", name="Delete the group").click()
    page.wait_for_url("**/groups")


def test_a_topic_is_changed_shrunk_and_spread(visitor: Watched, world: World) -> None:
    """
    Give a topic more queues, then fewer with a preview, and move what waits into a wider one, as
    jobs that say what they do and can be stopped.
    """
    page = visitor.open(world.page("/topics/wide"))
    unfold(page, "Change")
    change = page.locator("form[action$='/change']")
    change.locator("input[name=readQueues]").fill("6")
    change.locator("input[name=writeQueues]").fill("6")
    submit(page, "Save")
    page = visitor.open(world.page("/topics/wide"))
    expect(page.locator("#settings")).to_contain_text("6")

    unfold(page, "Fewer queues")
    shrink = page.locator("form[action$='/shrink']")
    shrink.locator("input[name=queues]").fill("3")
    shrink.get_by_role("button", name="Preview").click()
    expect(page.locator("#shrink-plan")).not_to_be_empty()
    submit(page, "Shrink")
    page = visitor.open(world.page("/topics/wide"))
    expect(page.locator("#jobs")).to_contain_text("for producers to notice", timeout=20_000)
    page.locator("#jobs a").first.click()
    visitor.settle()
    submit(page, "Stop")

    page = visitor.open(world.page("/topics/orders"))
    unfold(page, "Move a backlog")
    spread = page.locator("form[action$='/spread']")
    spread.locator("input[name=group]").fill("billing")
    spread.locator("input[name=to]").fill("orders-wide")
    spread.locator("input[name=queues]").fill("8")
    spread.get_by_role("button", name="Preview").click()
    expect(page.locator("#spread-plan")).not_to_be_empty()
    submit(page, "Move")


def test_a_schema_reads_bodies(visitor: Watched, world: World) -> None:
    """
    A schema that is kept for a topic shows the fields of its bodies by name.
    """
    schema = {"type": "record", "name": "Paid", "fields": [{"name": "cents", "type": "int"}]}
    send(world.pair, Message("payments", b"\x0e", keys=("avro",)))
    page = visitor.open(world.page("/masking"))
    add = page.locator("form[action$='/schemas/add']")
    add.locator("input[name=topic]").fill("payments")
    add.locator("textarea").fill(json.dumps(schema))
    submit(page, "Keep schema")
    page = visitor.open(world.page("/messages?by=key&topic=payments&key=avro"))
    page.locator("table.messages tbody a").first.click()
    visitor.settle()
    expect(page.locator("pre").first).to_contain_text('"cents": 7')
    page = visitor.open(world.page("/masking"))
    page.get_by_role("button", name="Delete payments").click()
    page.locator("#said .ok").wait_for()


def test_pipelines_run_as_jobs(visitor: Watched, world: World) -> None:
    """
    An archive is made by a form, with its progress on the page; a replay counts from it; a report
    is written, and one that follows for ever is stopped.
    """
    page = visitor.open(world.page("/data"))
    unfold(page, "Archive topics")
    page.locator("form[action$='/archive'] input[name=topics]").fill("orders")
    submit(page, "Begin")
    jobs = page.locator("#data-jobs")
    expect(jobs).to_contain_text("done", timeout=180_000)
    page = visitor.open(world.page("/data"))
    expect(page.locator("main")).to_contain_text("lake")

    unfold(page, "Replay messages")
    replay = page.locator("form[action$='/replay']")
    replay.locator("select[name=archive]").select_option("lake")
    replay.locator("input[name=topic]").fill("orders")
    replay.locator("input[name=into]").fill("wide")
    replay.get_by_role("button", name="Begin").click()
    expect(jobs).to_contain_text("replay orders into wide", timeout=20_000)

    unfold(page, "Write a report")
    report = page.locator("form[action$='/report']")
    report.locator("input[name=name]").fill("today")
    report.get_by_role("button", name="Begin").click()
    link = page.locator("#data-jobs a", has_text="report today")
    link.wait_for()
    link.click()
    visitor.settle()
    submit(page, "Stop")


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
    page.locator("input[name=again]").check()
    page.locator("input[name=stage]").fill("1")
    submit(page, "Send marked or all again")
    jobs = page.locator("#jobs")
    jobs.get_by_role("button", name="Go on").click()  # after the first letter it waits
    expect(jobs).to_contain_text("waits", timeout=15_000)
    jobs.get_by_role("button", name="Stop").click()
    expect(jobs).to_contain_text("stopped", timeout=15_000)
    page.locator("input[name=rate]").fill("0.5")
    page.locator("input[name=stage]").fill("")
    submit(page, "Send marked or all again")
    jobs.get_by_role("button", name="Pause").click()
    jobs.get_by_role("button", name="Go on").wait_for()
    jobs.get_by_role("button", name="Stop").click()
    jobs.get_by_role("button", name="Go on").wait_for(state="detached")


def test_a_note_is_kept_with_the_letters(visitor: Watched, world: World) -> None:
    """
    What somebody writes about dead letters is there for the next one, until it is removed.
    """
    page = visitor.open(world.page("/letters/billing"))
    page.locator("form[action$='/add'] input[name=text]").fill("asked the bank")
    submit(page, "Add note")
    page = visitor.open(world.page("/letters/billing"))
    expect(page.locator("ul.notes")).to_contain_text("asked the bank")
    page.get_by_role("button", name=re.compile("^Remove")).first.click()
    page.locator("#said .ok").wait_for()
    page = visitor.open(world.page("/letters/billing"))
    expect(page.locator("ul.notes")).not_to_contain_text("asked the bank")


def test_a_member_consumes_a_message_again(visitor: Watched, world: World) -> None:
    """
    Choose a group, then one of its members; it gets the message, and the page says what it made of
    it.
    """
    seen: list[bytes] = []
    with member(
        world.pair, "auditing", "reminders", tag="none", handle=lambda each: seen.append(each.body)
    ):
        page = visitor.open(message(world, "a book"))
        unfold(page, "Let a member consume it")
        part = page.locator("#consumers")
        part.locator("input[name=group]").fill("auditing")
        part.get_by_role("button", name="Show members").click()
        part.locator("select[name=clientId]").wait_for()
        assert "consumed it" in submit(page, "Consume now")
    assert any(b"a book" in body for body in seen)


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
    assert '"amount": "***"' in shown
    assert not re.search(r'"amount": \d', shown)
    body = page.locator("section", has=page.locator("pre")).first
    expect(body.locator(".mark.note")).to_have_text("masked")
    page = visitor.open(world.page("/masking"))
    page.get_by_role("button", name="Delete price.amount").click()
    page.locator("#said .said").wait_for()
    page = visitor.open(message(world, "a book"))
    expect(page.locator("pre").first).to_contain_text('"amount": ')


def test_a_long_search_is_stopped_and_goes_on(visitor: Watched, world: World) -> None:
    """
    It says how far it looked all the time; stopped it stays there, and goes on to the end when
    somebody wants that.
    """

    async def fill() -> None:
        async with Producer(world.pair, group="shop") as producer:
            await producer.send_all(Message("stream", b"drop %d" % n) for n in range(LONG))

    run(fill())
    page = visitor.page
    page.route("**/message-rows*", lambda _: None)  # the second part does not come
    page.goto(world.page("/messages?topic=stream&text=nowhere"))
    progress = page.locator("#progress")
    progress.get_by_role("button", name="Stop").click()
    go_on = progress.get_by_role("link", name="Go on")
    expect(go_on).to_be_focused()
    stopped = progress.get_by_role("status").inner_text()
    assert f"of {LONG:,} messages" in stopped
    assert "that is all" not in stopped
    page.unroute("**/message-rows*")
    page.wait_for_timeout(1_000)  # in which a search that goes on would have asked for more
    assert stopped == progress.get_by_role("status").inner_text()
    go_on.click()
    expect(progress).to_contain_text(f"Looked at {LONG:,} of {LONG:,}", timeout=120_000)
    expect(progress).to_contain_text("that is all")


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


def test_a_user_gets_and_loses_rights(visitor: Watched, world: World) -> None:
    """
    Create a user, allow it something, see which rule decides, edit and remove that, disable the
    user, copy it, and delete it with its name typed.
    """
    page = visitor.open(world.page("/new-user", GUARDED))
    page.get_by_label("Name", exact=True).fill("clerk")
    page.get_by_label("Password").fill("clerk-secret")
    assert "user clerk is created on broker-a, broker-b" in submit(page, "Create")

    page = visitor.open(world.page("/rights/users/clerk", GUARDED))
    unfold(page, "Allow or deny something")
    put = page.locator("form[action$='/policies/put']")
    put.locator("input[name=resource]").fill("Topic:orders")
    put.get_by_label("Pub", exact=True).check()
    put.locator("input[name=sources]").fill("10.0.0.0/8, 127.0.0.1")
    submit(page, "Put policy")
    expect(page.locator("#state")).to_contain_text("10.0.0.0/8")
    page.get_by_role("link", name="Edit Topic:orders").click()
    visitor.settle()
    assert put.get_by_label("Pub", exact=True).is_checked()
    put.locator("select[name=decision]").select_option("Deny")
    submit(page, "Put policy")
    expect(page.locator("#state")).to_contain_text("Deny")
    page.get_by_role("button", name="Remove Topic:orders").click()
    expect(page.locator("#state")).to_contain_text("No policy")

    unfold(page, "Change")
    page.locator("form[action$='/change'] select[name=status]").select_option("disable")
    submit(page, "Save")
    expect(page.locator("#state")).to_contain_text("disabled")
    unfold(page, "Make it the same")
    assert "as on broker-a" in submit(page, "Copy")
    unfold(page, "Delete")
    expect(page.locator("section.actions")).to_contain_text("Deletes the user on broker-a")
    page.get_by_label("to confirm").fill("clerk")
    page.get_by_role("button", name="Delete the user").click()
    page.wait_for_url("**/rights?tab=users")
    expect(page.locator("#list")).to_contain_text("shop")
    expect(page.locator("#list")).not_to_contain_text("clerk")


def test_an_access_key_gets_and_loses_rights(visitor: Watched, world: World) -> None:
    """
    Add an access key, see which rule decides, change its rules, copy it, delete it with its name
    typed, and replace the white list.
    """
    page = visitor.open(world.page("/new-account", GUARDED))
    page.get_by_label("Access key", exact=True).fill("clerk-app")
    page.get_by_label("Secret key").fill("clerk-secret")
    page.locator("textarea[name=topicPerms]").fill("orders=PUB|SUB")
    submit(page, "Create")

    page = visitor.open(world.page("/rights", GUARDED))
    expect(page.locator("#list")).to_contain_text("clerk-app")
    explain = page.locator("form[hx-get$='/decision']")
    explain.locator("input[name=user]").fill("clerk-app")
    explain.locator("input[name=resource]").fill("Topic:orders")
    explain.get_by_role("button").click()
    expect(page.locator("#decision")).to_contain_text("topicPerms: PUB")
    white = page.locator("section", has=page.locator("#white"))
    white.locator("summary").click()
    white.locator("textarea").fill("10.77.0.1\n10.77.1.*")
    submit(page, "Replace white list")
    expect(page.locator("#white")).to_contain_text("10.77.1.*")

    page = visitor.open(world.page("/rights/accounts/clerk-app", GUARDED))
    unfold(page, "Change")
    page.locator("textarea[name=topicPerms]").fill("orders=SUB")
    submit(page, "Save")
    expect(page.locator("#state")).to_contain_text("orders=SUB")
    unfold(page, "Make it the same")
    assert "as on broker-a" in submit(page, "Copy")
    unfold(page, "Delete")
    page.get_by_label("to confirm").fill("clerk-app")
    page.get_by_role("button", name="Delete the access key").click()
    page.wait_for_url("**/rights?tab=accounts")
    expect(page.locator("#list")).not_to_contain_text("clerk-app")


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


def test_a_topic_of_dead_letters_is_made_readable(visitor: Watched, world: World) -> None:
    """
    RocketMQ makes topics of dead letters that nobody may read; the page says so and mends it.
    """
    dead = "%DLQ%sealed"

    async def seal() -> None:
        async with Admin(world.pair) as admin:
            masters = await admin.masters()
            config = TopicConfig(topic_name=dead, read_queue_nums=1, write_queue_nums=1, perm=WRITE)
            for address in masters.values():
                await admin.put_topics(address, [config])

    run(seal())
    page = visitor.open(world.page("/letters/sealed"))
    assert "readable now" in submit(page, "Make the topic readable")
    page = visitor.open(world.page("/letters/sealed"))
    assert page.locator("form[action*='letter-mending']").count() == 0


def test_a_half_message_that_was_given_up_is_asked_about_again(
    visitor: Watched, world: World
) -> None:
    """
    After its last check-back a half message stands on the page; asked again, its producer commits
    it, and it can be read.
    """
    hurried = {"transactionTimeOut": "200", "transactionCheckInterval": "300"}
    decisions = [Decision.UNKNOWN]
    with SyncProducer(world.pair, group="clearing") as producer:
        producer.check(lambda _: decisions[-1])
        before = run(change_settings(world.pair, hurried | {"transactionCheckMax": "1"}))
        try:
            with producer.transaction(Message("payments", "half 7")) as transaction:
                transaction.unknown()
            visitor.open(world.page("/transactions"))
            row = visitor.page.locator("tr", has_text="half 7")
            found = row.get_by_role("button", name="Check again")
            deadline = time.monotonic() + 60
            while not found.count():
                assert time.monotonic() < deadline, "the broker did not give up"
                visitor.open(world.page("/transactions"))
            decisions.append(Decision.COMMIT)
            found.click()
            expect(visitor.page.locator("#said")).to_contain_text("the broker asks again")
            page = visitor.open(world.page("/messages?topic=payments&text=half%207"))
            while not page.locator("table.messages", has_text="half 7").count():
                assert time.monotonic() < deadline, "the message was not committed"
                page = visitor.open(world.page("/messages?topic=payments&text=half%207"))
        finally:
            run(change_settings(world.pair, before))


def test_a_half_message_is_asked_about_now(visitor: Watched, world: World) -> None:
    """
    Long before the broker would ask by itself, its producer is asked, commits it, and it is gone
    from the page.
    """
    decisions = [Decision.UNKNOWN]
    with SyncProducer(world.pair, group="counter") as producer:
        producer.check(lambda _: decisions[-1])
        half = Message("payments", "half 8", keys=("half-8",))
        with producer.transaction(half, check_after=3600) as transaction:
            transaction.unknown()
        page = visitor.open(world.page("/transactions"))
        row = page.locator("tr", has_text="half-8")
        expect(row).to_contain_text("1 online")
        decisions.append(Decision.COMMIT)
        row.get_by_role("button", name="Check now").click()
        expect(page.locator("#said")).to_contain_text("the broker asks now")
        row.wait_for(state="detached", timeout=30_000)  # the list asks for itself again


async def change_settings(namesrv: str, wanted: dict[str, str]) -> dict[str, str]:
    """Change settings of all masters; returns what they were."""
    before: dict[str, str] = {}
    async with Admin(namesrv) as admin:
        for address in (await admin.masters()).values():
            config = await admin.broker_config(address)
            before = {key: config[key] for key in wanted}
            await admin.update_broker_config(address, wanted)
    return before


def test_every_act_was_done() -> None:
    """
    Each form that the pages have was sent in Chromium.
    """
    declared = {each.path for each in DECLARED if each.method == "POST"}
    done = {
        path
        for path in declared
        if any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), act) for act in ACTS)
    }

    assert declared == done
