"""Who may come in: users of the console, keys of the cluster, and pages of other sites."""

import asyncio
import base64
import http.client
import json
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from consolekit import Reply, Site, console, until
from starlette.requests import Request

from gantrymq.base.errors import ConfigError
from gantrymq.client.admin.topics import shrink
from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import UsersFile
from gantrymq.console.api.http import read_body
from gantrymq.console.errors import BadInput
from gantrymq.console.settings import LoginKind
from gantrymq.testing.threaded import GantryCluster

RULES = """\
globalWhiteRemoteAddresses: []
accounts:
  - {accessKey: operator, secretKey: operator-secret, admin: true}
  - accessKey: shop-app
    secretKey: shop-secret
    defaultTopicPerm: DENY
    defaultGroupPerm: DENY
    topicPerms: [orders=PUB|SUB]
    groupPerms: [billing=SUB]
"""
AUDIT = "/c/test/access"


@pytest.fixture
def site(gantry: GantryCluster, tmp_path: Path) -> Iterator[Site]:
    """A console with an admin and a reader."""
    users = UsersFile(tmp_path / "users.json")
    users.put("ann", Role.ADMIN, "ann's password")
    users.put("bob", Role.READER, "bob's password")
    with console(gantry, data=tmp_path, login=LoginKind.USERS) as found:
        yield found


def log_in(site: Site, name: str, password: str, **fields: str) -> Reply:
    return site.act("/login", name=name, password=password, **fields)


def cookie_of(reply: Reply) -> str:
    """The session's cookie as a browser sends it."""
    assert reply.status == 303, reply.text
    (cookie,) = SimpleCookie(reply.headers["set-cookie"]).values()
    assert cookie["httponly"]
    assert "strict" == cookie["samesite"].lower()
    return f"{cookie.key}={cookie.value}"


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_nobody_comes_in_without_a_login(site: Site) -> None:
    """
    Pages lead to the login, parts of pages too, and the API answers 401; texts and styles are open.
    """
    page = site.ask("GET", "/c/test/overview?a=b")
    assert (303, "/login?next=/c/test/overview%3Fa%3Db") == (page.status, page.headers["location"])
    part = site.ask("GET", "/c/test/overview", HX_Request="true")
    assert (204, "/login") == (part.status, part.headers["hx-redirect"])
    call = site.call("GET", "/clusters")
    assert (401, {"error": "log in first"}) == (call.status, call.json())
    assert call.headers["www-authenticate"].startswith("Basic ")
    for path in ("/login", "/static/console.css", "/api/v1/openapi.json/..%2f", "/nothing"):
        assert site.ask("GET", path).status in (200, 303, 401)
    assert (
        "www-authenticate"
        not in site.ask("GET", "/api/v1/clusters", Sec_Fetch_Site="same-origin").headers
    )


def test_users_log_in_and_out(site: Site) -> None:
    """
    The right password opens the page that was asked for, until the logout; each login is noted.
    """
    reply = log_in(site, "ann", "ann's password", next=AUDIT)
    cookie = cookie_of(reply)
    assert AUDIT == reply.headers["location"]
    page = site.ask("GET", AUDIT, cookie=cookie)
    assert 200 == page.status
    assert "log_in" in page.text
    assert "ann" in page.text
    account = site.ask("GET", "/api/v1/account", cookie=cookie).json()
    assert {"name": "ann", "role": "admin", "mayChange": True, "isAdmin": True} == account

    assert 303 == site.ask("POST", "/logout", cookie=cookie, origin=site.url).status
    assert 303 == site.ask("GET", AUDIT, cookie=cookie).status


def test_a_reader_looks_and_changes_nothing(site: Site) -> None:
    """
    A reader sees pages; every change is refused, and the audit trail is for admins.
    """
    cookie = cookie_of(log_in(site, "bob", "bob's password"))

    assert "broker-a" in site.ask("GET", "/c/test/overview", cookie=cookie).text
    refused = site.ask(
        "POST", "/api/v1/clusters/test/topics", b'{"topic": "mine"}', cookie=cookie,
        content_type="application/json",
    )  # fmt: skip
    assert 403 == refused.status, refused.text
    assert 403 == site.ask("GET", AUDIT, cookie=cookie).status


def test_wrong_passwords_have_to_wait(site: Site) -> None:
    """
    After some wrong passwords the right one is refused for a while as well, for that name alone.
    """
    for _ in range(5):
        wrong = log_in(site, "ann", "guess")
        assert (401, True) == (wrong.status, "name or password is wrong" in wrong.text)
        assert "set-cookie" not in wrong.headers
    late = log_in(site, "ann", "ann's password")
    assert 429 == late.status
    assert "try again in" in late.text
    assert 401 == log_in(site, "nobody-here", "x").status
    cookie_of(log_in(site, "bob", "bob's password"))


def test_programs_name_their_user_in_each_request(site: Site, tmp_path: Path) -> None:
    """
    The API takes name and password in the header Authorization; the audit trail has each once, and
    every wrong one.
    """
    right = site.ask("GET", "/api/v1/clusters", authorization=basic("bob", "bob's password"))
    assert {"clusters": ["test"]} == right.json()
    wrong = site.ask("GET", "/api/v1/clusters", authorization=basic("bob", "no"))
    assert (401, {"error": "name or password is wrong"}) == (wrong.status, wrong.json())
    for damaged in ("Basic ?", "Basic /w==", "Bearer x", "Basic " + "A" * 5_000):
        reply = site.ask("GET", "/api/v1/clusters", authorization=damaged)
        assert 401 == reply.status
    site.ask("GET", "/api/v1/clusters", authorization=basic("bob", "bob's password"))
    trail = (tmp_path / "audit.jsonl").read_text()
    noted = [json.loads(line) for line in trail.splitlines()]
    assert [(each["user"], each["act"], each.get("error")) for each in noted] == [
        ("bob", "log_in", None), ("bob", "log_in", "name or password is wrong"),
    ]  # fmt: skip


def test_a_removed_user_is_out_at_once(site: Site, tmp_path: Path) -> None:
    """
    Sessions end when their user is removed, or gets another password or role.
    """
    users = UsersFile(tmp_path / "users.json")
    ann = cookie_of(log_in(site, "ann", "ann's password"))
    bob = cookie_of(log_in(site, "bob", "bob's password"))
    users.remove("bob")
    assert 200 == site.ask("GET", "/c/test/overview", cookie=ann).status
    assert 303 == site.ask("GET", "/c/test/overview", cookie=bob).status
    users.put("ann", Role.READER, "ann's password")
    assert 303 == site.ask("GET", "/c/test/overview", cookie=ann).status


def test_other_sites_change_nothing(gantry: GantryCluster) -> None:
    """
    A request of another site's page is refused, also under another name for this address, and every
    answer forbids frames and foreign scripts.
    """
    with console(gantry) as site:
        body = b'{"topic": "theirs"}'
        path = "/api/v1/clusters/test/topics"
        for headers in ({"origin": "http://evil.example"}, {"sec_fetch_site": "cross-site"},
                        {"sec_fetch_site": "same-site"}, {"origin": "null"}):  # fmt: skip
            reply = site.ask("POST", path, body, content_type="application/json", **headers)
            assert 403 == reply.status, headers
        rebound = site.ask("GET", "/api/v1/clusters", host="evil.example")
        assert 403 == rebound.status
        page = site.ask("GET", "/c/test/overview")
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "DENY" == page.headers["x-frame-options"]
        assert "no-store" == page.headers["cache-control"]
        assert "cache-control" not in site.ask("GET", "/static/console.css").headers
        assert 404 == site.call("GET", "/clusters/test/topics/theirs").status


def test_what_nobody_can_read_is_refused_with_a_sentence(gantry: GantryCluster) -> None:
    """
    Addresses in headers that are none, and bodies that end too early, are no faults of the console.
    """
    with console(gantry) as site:
        assert 403 == site.ask("GET", "/c/test/overview", host="[").status
        assert 403 == site.ask("POST", "/logout", origin="http://[").status
        assert 303 == site.ask("GET", "/language/en", referer="http://[").status
        back = site.ask("GET", "/language/en", referer="http://elsewhere/\\evil.example/")
        assert "/" == back.headers["location"]


def test_a_body_that_ends_too_early_is_no_fault_of_the_console() -> None:
    """
    A browser that leaves within a form is told about by an error with a sentence.
    """
    parts = iter([{"type": "http.request", "body": b"a=", "more_body": True},
                  {"type": "http.disconnect"}])  # fmt: skip

    async def receive() -> Any:
        return next(parts)

    with pytest.raises(BadInput, match="ended within the body"):
        asyncio.run(read_body(Request({"type": "http", "headers": []}, receive)))


def test_a_login_gets_a_token_that_nobody_had(site: Site) -> None:
    """
    Also where a session was there before, which somebody else may have planted; that one ends.
    """
    planted = cookie_of(log_in(site, "bob", "bob's password"))

    ann = cookie_of(site.act("/login", name="ann", password="ann's password"))
    again = site.ask(
        "POST", "/login", b"name=ann&password=ann%27s+password", cookie=planted,
        content_type="application/x-www-form-urlencoded", origin=site.url,
    )  # fmt: skip

    assert len({planted, ann, cookie_of(again)}) == 3
    assert 303 == site.ask("GET", AUDIT, cookie=planted).status
    assert 200 == site.ask("GET", AUDIT, cookie=cookie_of(again)).status


def test_a_tail_ends_with_its_login(site: Site, gantry: GantryCluster) -> None:
    """
    It tells that, and shows nothing more.
    """
    gantry.create_topic("orders")
    cookie = cookie_of(log_in(site, "bob", "bob's password"))
    link = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=30)
    link.request("GET", "/api/v1/clusters/test/tail?topic=orders", headers={"cookie": cookie})
    answer = link.getresponse()
    assert b": tail\n" == answer.readline()

    site.ask("POST", "/logout", cookie=cookie, origin=site.url)

    assert b'event: trouble\ndata: "this login has ended"\n\n' in answer.read()
    link.close()


def test_a_form_of_the_login_is_small(site: Site) -> None:
    """
    Anybody may send one, so that nothing large is read.
    """
    assert 401 == log_in(site, "ann", "ann's password", next="/" + "a" * 100_000).status


def test_another_address_needs_a_login(gantry: GantryCluster, tmp_path: Path) -> None:
    """
    A console that others can reach does not start without users.
    """
    with (
        pytest.raises(ConfigError, match="gantry console user add"),
        console(gantry, data=tmp_path, host="0.0.0.0"),
    ):
        pass


def guarded(tmp_path: Path) -> GantryCluster:
    """A cluster with access control."""
    file = tmp_path / "plain_acl.yml"
    file.write_text(RULES)
    own = '{"accessKey":"operator","secretKey":"operator-secret"}'
    return GantryCluster(
        acl_enable=True, acl_file=str(file), inner_client_authentication_credentials=own
    )


def test_a_key_of_one_cluster_opens_no_other(tmp_path: Path) -> None:
    """
    What the console keeps about a cluster, and its jobs, are for those with a key of that cluster.
    """
    cluster = guarded(tmp_path)
    try:
        with console(cluster, cluster, data=tmp_path / "x", login=LoginKind.CLUSTER) as site:
            site.headers["cookie"] = cookie_of(
                log_in(site, "shop-app", "shop-secret", cluster="test")
            )
            for path in ("jobs", "jobs/1", "filters", "masking", "schemas",
                         "groups/billing/dead-letter-notes"):  # fmt: skip
                asked = site.call("GET", f"/clusters/test-1/{path}")
                assert 401 == asked.status, path
                assert "log in to 'test-1'" in asked.text
                assert 200 == site.call("GET", f"/clusters/test/{path}").status or path == "jobs/1"
            for method, path in (("DELETE", "jobs/1"), ("POST", "resend-jobs/1/go-on"),
                                 ("POST", "resend-jobs/1/pause")):  # fmt: skip
                assert 401 == site.call(method, f"/clusters/test-1/{path}").status
            saved = site.call(
                "POST", "/clusters/test-1/filters", name="a", topic="orders", query=""
            )
            assert 401 == saved.status
    finally:
        cluster.close()


def test_admins_are_keys_of_the_first_cluster(tmp_path: Path) -> None:
    """
    Who manages another cluster may name a key as they like; an admin's further keys change nothing.
    """
    cluster = guarded(tmp_path)
    try:
        with console(
            cluster, cluster, data=tmp_path / "x", login=LoginKind.CLUSTER, admins=("operator",)
        ) as site:

            def account(name: str, where: str) -> tuple[str, bool]:
                reply = log_in(site, name, f"{name.partition('-')[0]}-secret", cluster=where)
                site.headers["cookie"] = cookie_of(reply)
                found = site.api("GET", "/account")
                return found["name"], found["isAdmin"]

            assert ("operator", False) == account("operator", "test-1")
            assert ("operator", True) == account("operator", "test")
            assert ("operator", True) == account("shop-app", "test-1")
            site.headers.clear()
            assert ("shop-app", False) == account("shop-app", "test")
    finally:
        cluster.close()


def test_a_job_outlives_its_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It goes on with the key it was begun with, and others may look at it and not stop it.
    """
    monkeypatch.setattr(shrink, "SETTLE_SECONDS", 1.5)
    cluster = guarded(tmp_path)
    try:
        with console(cluster, data=tmp_path / "x", login=LoginKind.CLUSTER) as site:
            shop = cookie_of(log_in(site, "shop-app", "shop-secret"))
            site.headers["cookie"] = cookie_of(log_in(site, "operator", "operator-secret"))
            site.api("POST", "/clusters/test/topics", topic="wide", readQueues=4, writeQueues=4)
            job = site.api("POST", "/clusters/test/topics/wide/shrink", queues=2)["job"]
            assert 303 == site.ask("POST", "/logout", origin=site.url).status
            assert 401 == site.call("GET", "/clusters/test/jobs").status

            site.headers["cookie"] = shop
            stopped = site.call("DELETE", f"/clusters/test/jobs/{job}")
            assert (403, True) == (stopped.status, "a job of operator" in stopped.text)

            def end() -> Any:
                found = site.api("GET", f"/clusters/test/jobs/{job}")
                return found if found["state"] != "running" else None

            ended = until(end)
            assert ("done", "operator") == (ended["state"], ended["user"]), ended
    finally:
        cluster.close()


def test_keys_of_the_cluster_decide(tmp_path: Path) -> None:
    """
    With the cluster's access control people log in with their keys, and see and change what these
    may; a key that the cluster does not know is refused.
    """
    cluster = guarded(tmp_path)
    try:
        with console(
            cluster, data=tmp_path / "console", login=LoginKind.CLUSTER, admins=("operator",)
        ) as site:
            assert "Access key" in site.page("/login")
            assert 401 == log_in(site, "shop-app", "wrong").status
            assert 401 == log_in(site, "nobody", "shop-secret").status
            shop = cookie_of(log_in(site, "shop-app", "shop-secret"))
            operator = cookie_of(log_in(site, "operator", "operator-secret", cluster="test"))

            def create(topic: str, cookie: str) -> Reply:
                body = f'{{"topic": "{topic}"}}'.encode()
                return site.ask(
                    "POST", "/api/v1/clusters/test/topics", body, cookie=cookie,
                    content_type="application/json",
                )  # fmt: skip

            refused = create("theirs", shop)
            assert 403 == refused.status or 409 == refused.status, refused.text
            assert "admin" in refused.text
            made = create("ours", operator)
            assert 200 == made.status, made.text
            assert 200 == site.ask("GET", AUDIT, cookie=operator).status
            assert 403 == site.ask("GET", AUDIT, cookie=shop).status
            api = site.ask(
                "GET", "/api/v1/clusters/test/members",
                authorization=basic("operator", "operator-secret"),
            )  # fmt: skip
            assert 200 == api.status
            trail = (tmp_path / "console" / "audit.jsonl").read_text()
            assert "operator-secret" not in trail
            assert "shop-secret" not in trail
    finally:
        cluster.close()


def test_a_cluster_without_access_control_lets_nobody_log_in(gantry: GantryCluster) -> None:
    """
    Where every key is taken, a login by keys would be none.
    """
    with console(gantry, login=LoginKind.CLUSTER) as site:
        reply = log_in(site, "anybody", "anything")
        program = site.ask(
            "GET", "/api/v1/clusters/test/members", authorization=basic("anybody", "anything")
        )
        stray = site.ask("GET", "/api/v1/clusters/no/jobs", authorization=basic("any", "thing"))

        assert (403, 404) == (program.status, stray.status)
        assert "takes any key" in program.text
        assert 403 == reply.status
        assert "takes any key" in reply.text
