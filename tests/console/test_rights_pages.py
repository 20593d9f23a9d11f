"""The pages about access control: what they show, and what their forms do."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from consolekit import NAME, Site, console
from rightskit import (
    PAGE,
    ROOT,
    ROOT_SECRET,
    cluster_with_accounts,
    cluster_with_users,
    dead_broker,
    restart,
    told,
)

from gantrymq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from gantrymq.testing.threaded import GantryCluster

USER, ACCOUNT = f"{PAGE}/users/shop", f"{PAGE}/accounts/shop-app"
SECRETS = (ROOT_SECRET, "inner-secret", "shop-secret", "other-secret", "new-app-secret")


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch) -> Iterator[GantryCluster]:
    with cluster_with_users(monkeypatch, brokers=2) as found:
        yield found


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GantryCluster]:
    with cluster_with_accounts(monkeypatch, tmp_path) as found:
        yield found


def done(site: Site, path: str, **fields: object) -> str:
    """What a form says that has to succeed."""
    reply = site.act(path, **fields)
    assert 200 == reply.status, reply.text
    return reply.text


def test_a_cluster_without_access_control_says_so(gantry: GantryCluster) -> None:
    """The page names the brokers and what turns it on, in both languages, and has no lists."""
    with console(gantry) as site:
        page = site.page(PAGE)
        assert "none: everybody is served" in page
        assert "gantry up --secure" in page
        assert "authenticationEnabled=true" in page
        assert "New user" not in page
        chinese = site.ask("GET", PAGE, accept_language="zh-CN").text
        assert "用 gantry up --secure 启动新集群" in chinese


def test_users_on_pages(users: GantryCluster) -> None:
    """A user is made, gets a policy, is edited, disabled and deleted by forms."""
    with console(users) as site:
        assert site.page(f"/c/{NAME}/new-user")
        made = site.act(
            f"/c/{NAME}/new-user", user="shop", password="shop-secret", type="Normal",
            status="enable",
        )  # fmt: skip
        assert (200, "changed") == (made.status, made.headers["hx-trigger"])
        said = done(
            site, f"{USER}/policies/put", resource="Topic:orders", actions=["Pub", "Sub"],
            decision="Allow", policyType="Custom", sources="10.0.0.0/8, 10.1.0.1",
        )  # fmt: skip
        assert "Allow Pub,Sub on Topic:orders from 10.0.0.0/8, 10.1.0.1" in said

        page = site.page(USER)
        assert "Pub, Sub" in page
        assert "<code>10.1.0.1</code>" in page
        edited = site.page(f"{USER}?resource=Topic:orders&policyType=Custom")
        assert 'value="Topic:orders"' in edited
        assert 'value="10.0.0.0/8, 10.1.0.1"' in edited
        assert 2 == len(re.findall(r'name="actions" value="(?:Pub|Sub)" checked', edited))
        assert " open>" in edited
        assert "shop" in site.page(f"{PAGE}?search=shop")

        nothing = site.act(f"{USER}/policies/put", resource="Topic:orders", decision="Allow")
        assert (400, True) == (nothing.status, "actions" in nothing.text)
        done(site, f"{USER}/change", status="disable", type="", password="")
        assert "disabled" in site.page(USER)
        done(site, f"{USER}/policies/remove", resource="Topic:orders", policyType="Custom")
        assert "No policy" in site.page(USER)

        assert "Deletes the user on broker-a, broker-b" in site.page(f"{USER}/deletion")
        wrong = site.act(f"{USER}/delete", confirm="shops")
        assert 400 == wrong.status
        gone = site.act(f"{USER}/delete", confirm="shop")
        assert f"/c/{NAME}/rights?tab=users" == gone.headers["hx-redirect"]
        assert 404 == site.ask("GET", USER).status
        assert 404 == site.ask("GET", f"{USER}/deletion").status


def test_pages_show_where_brokers_differ(users: GantryCluster) -> None:
    """A user that is missing, other passwords, a broker that is dead, and one without rules."""
    with console(users) as site:
        done(site, f"/c/{NAME}/new-user", user="shop", password="shop-secret")
        told(users, "update_user", "broker-b", UserInfo(username="shop", password="other-secret"))
        told(users, "create_user", "broker-b", UserInfo(username="lonely", password="x"))
        page = site.page(PAGE)
        assert "not on broker-a" in page
        assert "differs in password" in page
        assert "not the same on all brokers (password)" in site.page(USER)
        assert "As on" in site.page(USER)
        assert "as on broker-a" in done(site, f"{USER}/copy", like="broker-a")
        assert "not the same" not in site.page(USER)
        with dead_broker(users, "broker-z"):
            assert "broker-z does not answer" in site.page(PAGE)
            assert "broker-z does not answer" in site.page(USER)
        own = site.page(f"{PAGE}/users/{ROOT}")
        assert "This console asks with this key" in own
        assert "super user may do everything" in own
        restart(users, "broker-b", authentication_enabled=False, authorization_enabled=False)
        mixed = site.page(PAGE)
        assert "different kinds of access control" in mixed
        restart(users, "broker-b", authentication_enabled=True)
        assert "policies do not count" in site.page(PAGE)
        assert "On broker-b policies do not count" in site.page(USER)


def test_accounts_on_pages(accounts: GantryCluster) -> None:
    """An access key is added, changed and deleted by forms, and the white list replaced."""
    with console(accounts) as site:
        page = site.page(PAGE)
        assert "access file (4.9)" in page
        assert "shop-app" in page
        assert "10.9.9.*" in page
        assert 'aria-current="true">Access keys' in page
        users = f"{PAGE}?tab=users"
        assert "No user matches" in site.page(users)
        done(site, f"/c/{NAME}/new-user", user="shop", password="shop-secret")
        assert "not in force" in site.page(users)
        assert "users are not in force: authenticationEnabled is off there" in site.page(USER)
        assert site.page(f"/c/{NAME}/new-account")
        done(
            site, f"/c/{NAME}/new-account", accessKey="new-app", secretKey="new-app-secret",
            admin="false", defaultTopicPerm="DENY", defaultGroupPerm="SUB",
            topicPerms="orders=PUB|SUB\r\nprices=SUB", groupPerms="", whiteAddress="",
        )  # fmt: skip
        assert "orders=PUB|SUB" in site.page(f"{PAGE}/accounts/new-app")

        shown = site.page(ACCOUNT)
        assert "orders=PUB|SUB\nprices=SUB\n</textarea>" in shown
        done(site, f"{ACCOUNT}/change", admin="true", defaultTopicPerm="SUB", topicPerms="a=PUB",
             groupPerms="", whiteAddress="", defaultGroupPerm="SUB")  # fmt: skip
        changed = site.page(ACCOUNT)
        assert "<code>a=PUB</code>" in changed
        assert "10.0.5.7" not in changed
        wrong = site.act(f"{ACCOUNT}/change", topicPerms="orders")
        assert (400, True) == (wrong.status, "is not NAME=VALUE" in wrong.text)

        told(accounts, "delete_account", "broker-b", "shop-app")
        assert "not the same on all brokers (not on broker-b)" in site.page(ACCOUNT)
        told(accounts, "put_account", "broker-b", "shop-app", "other-secret")
        assert "not the same on all brokers (rights, secret key)" in site.page(ACCOUNT)
        assert "as on broker-a" in done(site, f"{ACCOUNT}/copy", like="broker-a")
        assert "Deletes the access key on broker-a, broker-b" in site.page(f"{ACCOUNT}/deletion")
        gone = site.act(f"{ACCOUNT}/delete", confirm="shop-app")
        assert f"/c/{NAME}/rights?tab=accounts" == gone.headers["hx-redirect"]
        assert 404 == site.ask("GET", ACCOUNT).status

        done(site, f"{PAGE}/white-addresses", addresses="10.1.1.1\r\n10.2.2.*")
        assert "10.2.2.*" in site.page(PAGE)
        assert "nobody" in done(site, f"{PAGE}/white-addresses", addresses="")


def test_names_are_text(users: GantryCluster) -> None:
    """What users and resources are called is shown, and is no part of the page."""
    name = "<img src=x onerror=alert(1)>"
    told(users, "create_user", "broker-a", UserInfo(username=name, password="x"))
    entry = PolicyEntryInfo(resource=f"Topic:{name}", actions=["Pub"], decision="Allow")
    acl = AclInfo(subject=f"User:{name}", policies=[PolicyInfo(entries=[entry])])
    told(users, "create_acl", "broker-a", acl)
    with console(users) as site:
        user = f"{PAGE}/users/{quote(name, safe='')}"
        pages = [site.page(path) for path in (PAGE, user, f"{user}/deletion")]

    assert all("&lt;img src=x" in page for page in pages)
    assert [] == [page for page in pages if "<img src=x" in page]


def test_the_page_explains(users: GantryCluster) -> None:
    """The form shows which rule decides on each broker, or why nobody can say."""
    with console(users) as site:
        query = f"user={ROOT}&action=Pub&resource=Topic%3Aorders&address="
        page = site.page(f"{PAGE}/decision?{query}")
        assert 2 == page.count("userType Super")
        wrong = site.ask("GET", f"{PAGE}/decision?user=x&action=Pub&resource=orders")
        assert (400, True) == (wrong.status, "write Topic:NAME" in wrong.text)


def test_no_page_has_a_secret(users: GantryCluster, tmp_path: Path) -> None:
    """Nor the audit trail, which shows the change and the length of the password."""
    with console(users, data=tmp_path) as site:
        done(site, f"/c/{NAME}/new-user", user="shop", password="shop-secret")
        done(site, f"{USER}/change", password="other-secret")
        pages = [site.page(path) for path in (PAGE, USER, f"{USER}/deletion", f"/c/{NAME}/access")]

        assert [] == [secret for secret in SECRETS if secret in " ".join(pages)]
        assert "(12 characters)" in pages[-1]


def test_a_console_that_is_read_only_has_no_forms(users: GantryCluster) -> None:
    """It shows all to an admin, and changes nothing."""
    with console(users, is_read_only=True) as site:
        page = site.page(f"{PAGE}/users/{ROOT}")
        assert 'hx-post="' not in page + site.page(PAGE)
        assert 403 == site.act(f"/c/{NAME}/new-user", user="shop", password="x").status
