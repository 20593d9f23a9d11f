"""The console shows and changes the access control of RocketMQ's brokers: users of 5.3.3, access
files of 4.9.7, and neither.
"""

import base64
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from consolekit import NAME, Site, console, until
from playwright.sync_api import Browser

from conftest import watched
from gantrymq.console.settings import LoginKind

sys.path.append(str(Path(__file__).parents[1] / "interop"))

from real import RealCluster

BY_USERS: Final = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"operator","password":"operator-secret"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"inner-secret"}',
    # RocketMQ keeps no users without these.
    "authenticationMetadataProvider": (
        "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorizationMetadataProvider": (
        "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
}
ROOT, ROOT_SECRET = "operator", "operator-secret"
RIGHTS = f"/clusters/{NAME}/rights"
PAGE = f"/c/{NAME}/rights"
RULES = f"""\
globalWhiteRemoteAddresses:
  - 10.9.9.*
accounts:
  - accessKey: {ROOT}
    secretKey: {ROOT_SECRET}
    admin: true
  - accessKey: shop-app
    secretKey: shop-secret
    admin: false
    defaultTopicPerm: DENY
    topicPerms:
      - orders=PUB
"""


pytestmark = pytest.mark.timeout(300)


@contextmanager
def site_of(cluster: RealCluster) -> Iterator[Site]:
    """A console in which the operator is logged in."""
    with console(cluster.namesrv, login=LoginKind.CLUSTER) as site:
        pair = base64.b64encode(f"{ROOT}:{ROOT_SECRET}".encode()).decode()
        site.headers["authorization"] = f"Basic {pair}"
        yield site


@pytest.fixture(scope="module")
def by_users() -> Iterator[Site]:
    with (
        RealCluster("5.3.3", settings=BY_USERS) as cluster,
        site_of(cluster) as site,
    ):
        yield site


@pytest.fixture(scope="module")
def by_accounts() -> Iterator[Site]:
    cluster = RealCluster("4.9.7", settings={"aclEnable": "true"})
    file = cluster.directory / "conf" / "plain_acl.yml"
    file.parent.mkdir()
    file.write_text(RULES)
    with cluster, site_of(cluster) as site:
        yield site


def test_users_of_rocketmq(by_users: Site) -> None:
    """
    A user is made, allowed something, changed, explained and deleted, and nothing has its password.
    """
    site, user = by_users, f"{RIGHTS}/users/shop"
    (broker,) = site.api("GET", RIGHTS)["brokers"]
    assert ("users", True, None) == (broker["kind"], broker["checksPolicies"], broker["trouble"])
    site.api("POST", f"{RIGHTS}/users", user="shop", password="shop-secret")
    for resource, kind in (("Topic:orders", "Custom"), ("Group:*", "Default"), ("*", "Custom")):
        site.api(
            "PUT", f"{user}/policies", resource=resource, actions=["Pub", "Get"], policyType=kind,
            decision="Allow", sources=["127.0.0.1", "10.0.0.0/8"],
        )  # fmt: skip
    found = site.api("GET", user)
    assert [("Custom", "*"), ("Custom", "Topic:orders"), ("Default", "Group:*")] == [
        (each["policyType"], each["resource"]) for each in found["policies"]
    ]
    assert ["127.0.0.1", "10.0.0.0/8"] == found["policies"][0]["sources"]
    asked = {"user": "shop", "action": "Pub", "resource": "Topic:orders", "address": "10.1.1.1"}
    (decided,) = site.api("GET", f"{RIGHTS}/decision", **asked)["decisions"]
    assert "Allow" == decided["decision"]

    site.api("DELETE", f"{user}/policies", resource="Group:*", policyType="Default")
    site.api("PUT", user, status="disable", type="Super", password="other-secret")
    changed = site.api("GET", user)
    assert [("Super", "disable")] == [(b["type"], b["status"]) for b in changed["brokers"]]
    assert 2 == len(changed["policies"])
    pages = site.page(PAGE) + site.page(f"{PAGE}/users/shop")
    assert "users and policies (5.3)" in pages
    assert not any(secret in pages for secret in (ROOT_SECRET, "shop-secret", "other-secret"))
    loss = site.api("GET", f"{user}/deletion")
    assert 2 == len(loss["policies"])
    site.api("DELETE", user, confirm="shop")
    assert 404 == site.call("GET", user).status
    assert {"inner", ROOT} == {each["user"] for each in site.api("GET", f"{RIGHTS}/users")["users"]}


def test_accounts_of_rocketmq(by_accounts: Site) -> None:
    """
    An access key is added, changed, emptied and deleted, and the white list replaced.
    """
    site, shop = by_accounts, f"{RIGHTS}/accounts/shop-app"
    (broker,) = site.api("GET", RIGHTS)["brokers"]
    assert ("accounts", 2, None) == (broker["kind"], broker["accounts"], broker["users"])
    assert broker["files"][0]["path"].endswith("plain_acl.yml")
    assert {"orders": "PUB"} == rights(site, shop)["topicPerms"]

    site.api(
        "POST", f"{RIGHTS}/accounts", accessKey="new-app", secretKey="new-app-secret",
        topicPerms={"orders": "PUB|SUB"}, groupPerms={"g": "SUB"}, whiteAddress="10.1.1.1",
    )  # fmt: skip
    made = rights(site, f"{RIGHTS}/accounts/new-app")
    assert ({"orders": "PUB|SUB"}, {"g": "SUB"}) == (made["topicPerms"], made["groupPerms"])
    site.api("PUT", shop, topicPerms={"prices": "SUB"}, admin=True)
    assert ({"prices": "SUB"}, True) == (
        rights(site, shop)["topicPerms"], rights(site, shop)["admin"],
    )  # fmt: skip
    site.api("PUT", shop, topicPerms={}, admin=False)
    assert ({}, False) == (rights(site, shop)["topicPerms"], rights(site, shop)["admin"])
    site.api("PUT", f"{RIGHTS}/white-addresses", addresses=["10.2.2.*", "10.3.3.3"])
    assert [["10.2.2.*", "10.3.3.3"]] == until(lambda: white(site))
    site.api("DELETE", shop, confirm="shop-app")
    assert 404 == site.call("GET", shop).status
    page = site.page(PAGE) + site.page(f"{PAGE}/accounts/new-app")
    assert "access file (4.9)" in page
    assert "new-app-secret" not in page
    refused = site.call("POST", f"{RIGHTS}/users", user="shop", password="shop-secret")
    assert (400, True) == (refused.status, "no broker of this cluster keeps users" in refused.text)


def rights(site: Site, path: str) -> dict[str, Any]:
    (found,) = site.api("GET", path)["variants"]
    return dict(found)


def white(site: Site) -> list[list[str]]:
    return [each["addresses"] for each in site.api("GET", f"{RIGHTS}/white-addresses")["lists"]]


def test_rocketmq_without_access_control(chromium: Browser) -> None:
    """
    Both releases are shown as what they are, and changes are refused with what turns it on.
    """
    for version in ("4.9.7", "5.3.3"):
        with RealCluster(version) as cluster, console(cluster.namesrv) as site:
            (broker,) = site.api("GET", RIGHTS)["brokers"]
            assert ("none", None, None) == (broker["kind"], broker["users"], broker["trouble"])
            with watched(chromium) as visitor:
                page = visitor.open(f"{site.url}{PAGE}")
                assert "none: everybody is served" in page.locator("main").inner_text()
                assert not page.locator("p.said.error").count()
                assert [] == visitor.faults
            refused = site.call("POST", f"{RIGHTS}/users", user="shop", password="shop-secret")
            assert (400, True) == (refused.status, "gantry up --secure" in refused.text)
