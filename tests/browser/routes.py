"""The address of every page in the world of the browser tests."""

import json
import urllib.request
from collections.abc import Callable
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from world import GUARDED, PAIR, RAFT, World

from gantrymq.console.pages.all import PAGES as DECLARED

PARTS: Final = (
    "/", "/c/{cluster}", "/language/{code}", "/c/{cluster}/overview/findings",
    "/c/{cluster}/data/jobs", "/c/{cluster}/message-rows", "/c/{cluster}/tail-rows",
    "/c/{cluster}/message-history/{id}", "/c/{cluster}/samples",
    "/c/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}/consumers",
    "/c/{cluster}/topics/{topic}/shrink", "/c/{cluster}/topics/{topic}/spread",
    "/c/{cluster}/topics/{topic}/deletion", "/c/{cluster}/groups/{group}/reset",
    "/c/{cluster}/rights/decision", "/c/{cluster}/rights/users/{user}/deletion",
    "/c/{cluster}/rights/accounts/{accessKey}/deletion",
)  # fmt: skip
"""Redirects, and parts of pages that are in the page that asks for them."""


@cache
def api(world: World, path: str, cluster: str = PAIR) -> Any:
    """An answer of the API."""
    address = f"{world.console}/api/v1/clusters/{cluster}{path}"
    with urllib.request.urlopen(address, timeout=20) as answer:
        return json.load(answer)


def message(world: World, text: str = "", topic: str = "orders", cluster: str = PAIR) -> str:
    """The page of a message that contains a text."""
    asked = f"/messages?topic={topic}&limit=10&text={segment(text)}"
    found = api(world, asked, cluster)["messages"]
    place = f"{found[0]['broker']}/{found[0]['queueId']}/{found[0]['offset']}"
    return world.page(f"/messages/{topic}/{place}", cluster)


def raft_broker(world: World) -> str:
    """The page of a member of the raft group that follows."""
    members = api(world, "/members", RAFT)["members"]
    follower = next(each for each in members if each["role"] == "follower")
    return world.page(f"/brokers/{segment(follower['broker'])}/{follower['id']}", RAFT)


def job(world: World) -> str:
    """The page of a job that has ended: no queue of the topic is to go."""
    body = json.dumps({"queues": 4}).encode()
    address = f"{world.console}/api/v1/clusters/{PAIR}/topics/reminders/shrink"
    head = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, body, head), timeout=20) as answer:
        return world.page(f"/jobs/{json.load(answer)['job']}")


def letter(world: World) -> str:
    """The page of a dead letter."""
    found = api(world, "/groups/billing/dead-letters")["letters"]
    return world.page(f"/letters/billing/{segment(found[0]['deadId'])}")


def member(world: World) -> str:
    """The page of a member of the group that reads all the time."""
    found = api(world, "/groups/readers")["members"]
    return world.page(f"/groups/readers/member?clientId={segment(found[0]['clientId'])}")


Address = Callable[[World], str]


def below(path: str, cluster: str = PAIR) -> Address:
    return lambda world: world.page(path, cluster)


PAGES: Final[dict[str, tuple[str, Address]]] = {
    "overview": ("/overview", below("/overview")),
    "overview-raft": ("/overview", below("/overview", RAFT)),
    "broker": ("/brokers/{broker}/{id}", below("/brokers/broker-a/0")),
    "broker-raft": ("/brokers/{broker}/{id}", raft_broker),
    "topics": ("/topics", below("/topics")),
    "topics-raft": ("/topics", below("/topics", RAFT)),
    "new-topic": ("/new-topic", below("/new-topic")),
    "topic": ("/topics/{topic}", below("/topics/orders")),
    "topic-raft": ("/topics/{topic}", below("/topics/ledger", RAFT)),
    "messages": ("/messages", below("/messages?topic=orders")),
    "messages-raft": ("/messages", below("/messages?topic=ledger", RAFT)),
    "messages-by-key": ("/messages", below("/messages?by=key&topic=orders&key=order-3")),
    "tail": ("/tail", below("/tail?topic=orders")),
    "message": ("/messages/{topic}/{broker}/{queueId}/{offset}", lambda w: message(w, "a book")),
    "message-hostile": (
        "/messages/{topic}/{broker}/{queueId}/{offset}", lambda w: message(w, "onerror")
    ),
    "message-raft": (
        "/messages/{topic}/{broker}/{queueId}/{offset}",
        lambda w: message(w, "entry 3", "ledger", RAFT),
    ),
    "message-binary": (
        "/messages/{topic}/{broker}/{queueId}/{offset}", lambda w: message(w, topic="payments")
    ),
    "masking": ("/masking", below("/masking")),
    "groups": ("/groups", below("/groups")),
    "groups-raft": ("/groups", below("/groups", RAFT)),
    "new-group": ("/new-group", below("/new-group")),
    "group": ("/groups/{group}", below("/groups/billing")),
    "group-raft": ("/groups/{group}", below("/groups/auditing", RAFT)),
    "letters": ("/letters", below("/letters")),
    "letters-of-group": ("/letters/{group}", below("/letters/billing")),
    "letter": ("/letters/{group}/{letter}", letter),
    "waiting": ("/waiting", below("/waiting")),
    "waiting-raft": ("/waiting", below("/waiting", RAFT)),
    "transactions": ("/transactions", below("/transactions")),
    "job": ("/jobs/{job}", job),
    "member": ("/groups/{group}/member", member),
    "alarms": ("/alarms", below("/alarms")),
    "data": ("/data", below("/data")),
    "rights-off": ("/rights", below("/rights")),
    "rights-users": ("/rights", below("/rights?tab=users", GUARDED)),
    "rights-accounts": ("/rights", below("/rights", GUARDED)),
    "new-user": ("/new-user", below("/new-user", GUARDED)),
    "new-account": ("/new-account", below("/new-account", GUARDED)),
    "rights-user": ("/rights/users/{user}", below("/rights/users/shop", GUARDED)),
    "rights-account": (
        "/rights/accounts/{accessKey}", below("/rights/accounts/billing-app", GUARDED)
    ),
    "audit": ("/access", below("/access")),
}  # fmt: skip
"""By name: the path below a cluster as it is declared, and the address."""


def address_of(name: str, world: World) -> str:
    """The address of a page."""
    return PAGES[name][1](world)


def missing() -> list[str]:
    """Declared pages that are neither visited nor a part of another page."""
    known = {f"/c/{{cluster}}{path}" for path, _ in PAGES.values()} | set(PARTS)
    return sorted({each.path for each in DECLARED if each.method == "GET"} - known)


def segment(text: str) -> str:
    return quote(text, safe="")
