"""The pages of groups: what they show, and what their forms do."""

from collections.abc import Iterator

import pytest
from consolekit import NAME, Site, console, until
from consumekit import member, read, send

from gantrymq.testing.threaded import GantryCluster

GROUPS, PAGE = f"/clusters/{NAME}/groups", f"/c/{NAME}/groups"


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    gantry.create_topic("orders", 1)
    with console(gantry) as site:
        yield site


def test_the_list_is_searched_and_sorted(site: Site, gantry: GantryCluster) -> None:
    """The list shows lag and state of the groups that match."""
    send(gantry.namesrv, "orders", 3)
    read(gantry.namesrv, "orders", "billing", 3)
    send(gantry.namesrv, "orders", 2)
    site.api("POST", GROUPS, group="archive", consumeEnable=False)

    every = site.page(PAGE)
    found = site.page(f"{PAGE}?search=arch&sort=name")

    assert every.index(">billing<") < every.index(">archive<")
    assert "2 messages unread in all" in every
    assert "paused" in found
    assert ">billing<" not in found


def test_a_group_is_shown_with_its_members(site: Site, gantry: GantryCluster) -> None:
    """The page of a group has lag by queue, members, subscriptions and settings."""
    send(gantry.namesrv, "orders", 1)
    read(gantry.namesrv, "orders", "billing", 1)
    with member(gantry.namesrv, "billing", "orders", tag="paid || new"):
        members = until(lambda: site.api("GET", f"{GROUPS}/billing")["members"])
        client = members[0]["clientId"]
        page = site.page(f"{PAGE}/billing")
        said = site.page(f"{PAGE}/billing/member?clientId={client.replace('#', '%23')}&stacks=true")

    assert "broker-a:0" in page
    assert "paid || new" in page
    assert "retryMaxTimes" in page
    assert client in page
    assert client in said
    assert "PROP_CONSUMER_START_TIMESTAMP" in said


def test_forms_of_a_group(site: Site, gantry: GantryCluster) -> None:
    """A group is made, changed, paused, reset, copied and deleted by forms."""
    send(gantry.namesrv, "orders", 3)
    read(gantry.namesrv, "orders", "billing", 3)
    page = f"{PAGE}/billing"

    made = site.act(f"/c/{NAME}/new-group", group="audit", retryMaxTimes="3", consumeEnable="true")
    changed = site.act(f"{page}/change", retryMaxTimes="5", brokerId="")
    paused = site.act(f"{page}/pause")
    shown = site.page(page)
    resumed = site.act(f"{page}/resume")
    plan = site.page(f"{page}/reset?topic=orders&to=first&zone=UTC&queue=")
    reset = site.act(f"{page}/reset", topic="orders", to="first", zone="Europe/Berlin")
    copied = site.act(f"{page}/clone", topic="orders", target="audit")
    refused = site.act(f"{page}/delete", confirm="audit")
    deleted = site.act(f"{page}/delete", confirm="billing", deadLetters="true", force="true")

    assert [200] * 7 == [
        each.status for each in (made, changed, paused, resumed, reset, copied, deleted)
    ]
    assert 400 == refused.status
    assert "The group is paused" in shown
    assert "members keep running and ask in vain" in paused.text
    assert "1 of 1 queue would be moved: 3 messages again, 0 skipped" in plan
    assert "1 of 1 queue moved" in reset.text
    assert 404 == site.ask("GET", page).status
    assert [3] == [s["retryMaxTimes"] for s in site.api("GET", f"{GROUPS}/audit")["settings"]]


def test_pages_in_chinese(site: Site) -> None:
    """The same pages speak Chinese to those who chose it."""
    site.headers["cookie"] = "language=zh"
    site.api("POST", GROUPS, group="billing")

    assert "消费者组" in site.page(PAGE)
    assert "重置位点" in site.page(f"{PAGE}/billing")
    assert "新建消费者组" in site.page(f"/c/{NAME}/new-group")


def test_forms_answer_in_the_language_of_the_page(site: Site, gantry: GantryCluster) -> None:
    """Acts, refusals, plans, jobs and errors; the API stays English."""
    site.headers["accept_language"] = "zh-CN"
    send(gantry.namesrv, "orders", 2)
    read(gantry.namesrv, "orders", "billing", 2)
    made = site.act(f"/c/{NAME}/new-group", group="archive")
    again = site.act(f"/c/{NAME}/new-group", group="archive")
    paused = site.act(f"{PAGE}/archive/pause")
    plan = site.page(f"{PAGE}/billing/reset?topic=orders&to=first")
    begun = site.act(f"/c/{NAME}/topics/orders/shrink", queues="1")
    number = site.api("GET", f"/clusters/{NAME}/jobs")["jobs"][0]["job"]
    until(lambda: site.api("GET", f"/clusters/{NAME}/jobs/{number}")["state"] != "running")
    job = site.page(f"/c/{NAME}/jobs/{number}")
    missing = site.ask("GET", f"{PAGE}/nothing")
    search = site.page(f"/c/{NAME}/messages?topic=orders&offset=7")

    assert "消费者组 archive 已在 broker-a 上创建" in made.text
    assert "已存在：请修改它" in again.text
    assert "已在 broker-a 上暂停；成员继续运行但取不到消息" in paused.text
    assert "将移动 1 个队列中的 1 个：重新消费 2 条消息，跳过 0 条" in plan
    assert "将 orders 缩减到 1 个队列：已开始" in begun.text
    assert "没有 Broker 的队列超过 1 个" in job
    assert (404, True) == (missing.status, "没有消费者组" in missing.text)
    assert "偏移量需要指定队列" in search
    assert "there is no group" in site.call("GET", f"{GROUPS}/nothing").text
