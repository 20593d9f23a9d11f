"""Access keys of 4.9's access files and white lists through the API, on brokers with own files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from consolekit import Reply, Site, console, until
from rightskit import (
    RIGHTS,
    ROOT,
    ROOT_SECRET,
    address,
    cluster_with_accounts,
    dead_broker,
    restart,
    told,
    with_admin,
)

from gantrymq.client.core.errors import BrokerRefused
from gantrymq.console.api.rights.account_changes import drop_account
from gantrymq.testing.threaded import GantryCluster

ACCOUNTS = f"{RIGHTS}/accounts"
WHITE = f"{RIGHTS}/white-addresses"
SECRETS = (ROOT_SECRET, "inner-secret", "shop-secret", "other-secret", "new-app-secret")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GantryCluster]:
    with cluster_with_accounts(monkeypatch, tmp_path) as found:
        yield found


@pytest.fixture
def site(cluster: GantryCluster, tmp_path: Path) -> Iterator[Site]:
    with console(cluster, data=tmp_path / "console") as found:
        yield found


def refused(reply: Reply, status: int, *words: str) -> None:
    assert status == reply.status, reply.text
    for each in words:
        assert each in reply.text


def account(cluster: GantryCluster, name: str, key: str) -> dict[str, Any] | None:
    """An account as a broker has it, with its secret."""
    rows = told(cluster, "access_config", name).plain_access_configs
    found: list[dict[str, Any]] = [each for each in rows if each["accessKey"] == key]
    return found[0] if found else None


def test_accounts_are_listed_without_secrets(site: Site) -> None:
    """Key, admin, permissions and white address, each broker with its file and its versions."""
    found = site.api("GET", RIGHTS)
    assert [("broker-a", "accounts", 3), ("broker-b", "accounts", 3)] == [
        (each["name"], each["kind"], each["accounts"]) for each in found["brokers"]
    ]
    assert all(each["files"][0]["path"].endswith("plain_acl.yml") for each in found["brokers"])
    accounts = site.api("GET", ACCOUNTS, search="app")["accounts"]
    assert [("shop-app", False, "DENY", "SUB", 3, "10.0.5.7", [], False)] == [
        (a["accessKey"], a["admin"], a["defaultTopicPerm"], a["defaultGroupPerm"], a["rules"],
         a["whiteAddress"], a["missingOn"], a["differs"])
        for a in accounts
    ]  # fmt: skip
    shop = site.api("GET", f"{ACCOUNTS}/shop-app")
    (rights,) = shop["variants"]
    assert ["broker-a", "broker-b"] == rights["brokers"]
    assert {"orders": "PUB|SUB", "prices": "SUB"} == rights["topicPerms"]
    assert {"billing": "SUB"} == rights["groupPerms"]
    assert (False, True) == (shop["isOwn"], site.api("GET", f"{ACCOUNTS}/{ROOT}")["isOwn"])


def test_an_account_is_added_changed_and_deleted(site: Site, cluster: GantryCluster) -> None:
    """On all brokers; what is left out stays, the secret key too."""
    said = site.api(
        "POST", ACCOUNTS, accessKey="new-app", secretKey="new-app-secret",
        topicPerms={"orders": "PUB"}, whiteAddress="10.1.1.*", defaultGroupPerm="SUB",
    )  # fmt: skip
    assert "account new-app is added on broker-a, broker-b" == said["text"]
    again = site.call("POST", ACCOUNTS, accessKey="new-app", secretKey="new-app-secret")
    refused(again, 400, "broker-a, broker-b has an access key new-app already")

    site.api("PUT", f"{ACCOUNTS}/new-app", topicPerms={"prices": "SUB"}, groupPerms={"g": "SUB"})

    for name in ("broker-a", "broker-b"):
        assert {
            "accessKey": "new-app", "secretKey": "new-app-secret", "defaultTopicPerm": "DENY",
            "defaultGroupPerm": "SUB", "topicPerms": ["prices=SUB"], "groupPerms": ["g=SUB"],
            "whiteRemoteAddress": "10.1.1.*",
        } == {key: value for key, value in (account(cluster, name, "new-app") or {}).items()
              if value is not False}  # fmt: skip
    site.api("PUT", f"{ACCOUNTS}/new-app", secretKey="other-secret", admin=True)
    found = account(cluster, "broker-b", "new-app") or {}
    assert ("other-secret", True) == (found["secretKey"], found["admin"])

    loss = site.api("GET", f"{ACCOUNTS}/new-app/deletion")
    assert {"topic prices=SUB": 2, "group g=SUB": 2, "admin": 2} == loss["rules"]
    refused(site.call("DELETE", f"{ACCOUNTS}/new-app", confirm="new"), 400, "type the name")
    assert "is deleted on" in site.api("DELETE", f"{ACCOUNTS}/new-app", confirm="new-app")["text"]
    assert account(cluster, "broker-b", "new-app") is None
    refused(site.call("GET", f"{ACCOUNTS}/new-app"), 404, "no broker has an access key")


def test_an_account_that_is_gone_already_is_deleted(cluster: GantryCluster, tmp_path: Path) -> None:
    """
    Brokers may share a file. Whoever refuses for another reason, and keeps the key, is told of.
    """
    place = address(cluster, "broker-a")
    for _ in range(2):
        with_admin(cluster, lambda admin: drop_account(admin, place, "shop-app"))
        assert account(cluster, "broker-a", "shop-app") is None
    (tmp_path / "b" / "plain_acl.yml.tmp").mkdir()  # where the new file would lie
    other = address(cluster, "broker-b")
    with pytest.raises(BrokerRefused):
        with_admin(cluster, lambda admin: drop_account(admin, other, "shop-app"))
    assert account(cluster, "broker-b", "shop-app") is not None


def test_rules_and_addresses_can_be_emptied(site: Site, cluster: GantryCluster) -> None:
    """RocketMQ's request only adds and replaces, so the account is written anew."""
    site.api("PUT", f"{ACCOUNTS}/shop-app", topicPerms={}, groupPerms={}, whiteAddress="")

    (rights,) = site.api("GET", f"{ACCOUNTS}/shop-app")["variants"]
    assert ({}, {}, "") == (rights["topicPerms"], rights["groupPerms"], rights["whiteAddress"])
    found = account(cluster, "broker-b", "shop-app") or {}
    assert ("shop-secret", "SUB") == (found["secretKey"], found["defaultGroupPerm"])


@pytest.mark.parametrize(
    "question",
    [
        {"accessKey": "short", "secretKey": "long-enough"},
        {"accessKey": "new-app", "secretKey": "short"},
        {"accessKey": "new/app", "secretKey": "long-enough"},
        {"accessKey": "new-app", "secretKey": " long-enough"},
        {"accessKey": "new-app", "secretKey": "long-enough", "defaultTopicPerm": "READ"},
        {"accessKey": "new-app", "secretKey": "long-enough", "topicPerms": {"a": "READ"}},
        {"accessKey": "new-app", "secretKey": "long-enough", "topicPerms": {"a,b": "PUB"}},
        {"accessKey": "new-app", "secretKey": "long-enough", "whiteAddress": "here"},
    ],
)
def test_an_account_without_sense_is_refused(site: Site, question: dict[str, Any]) -> None:
    """Before any broker is asked, and without the secret key in the sentence."""
    reply = site.call("POST", ACCOUNTS, **question)

    refused(reply, 400)
    assert "long-enough" not in reply.text
    assert 3 == site.api("GET", ACCOUNTS)["count"]


def test_nobody_takes_the_last_admin_away(site: Site, cluster: GantryCluster) -> None:
    """The key of the console stays an admin, and so does the last one of a broker."""
    told(cluster, "put_white_addresses", "broker-b", ["127.0.0.1"])
    told(cluster, "delete_account", "broker-b", ROOT)
    last = site.call("DELETE", f"{ACCOUNTS}/inner-user", confirm="inner-user")
    refused(last, 400, "broker-b would have no admin without inner-user")
    refused(site.call("DELETE", f"{ACCOUNTS}/{ROOT}", confirm=ROOT), 400, "asks with the key")
    refused(site.call("PUT", f"{ACCOUNTS}/{ROOT}", admin=False), 400, "asks with the key")
    refused(site.call("PUT", f"{ACCOUNTS}/shop-app"), 400, "say what to change")
    own = site.api("PUT", f"{ACCOUNTS}/{ROOT}", secretKey="other-secret")["text"]
    assert "give it the new one" in own


def test_differences_between_brokers_are_shown_and_mended(
    site: Site, cluster: GantryCluster
) -> None:
    """Other rights, another secret key, a key on one broker only; a copy makes them the same."""
    told(cluster, "delete_account", "broker-b", "inner-user")
    told(cluster, "put_account", "broker-b", "shop-app", "other-secret", topic_perms=["x=PUB"])

    found = {each["accessKey"]: each for each in site.api("GET", ACCOUNTS)["accounts"]}
    assert ["broker-b"] == found["inner-user"]["missingOn"]
    assert (True, False) == (found["shop-app"]["differs"], found[ROOT]["differs"])
    shop = site.api("GET", f"{ACCOUNTS}/shop-app")
    assert [["broker-a"], ["broker-b"]] == [each["brokers"] for each in shop["variants"]]
    assert shop["hasOtherSecrets"]
    changed = site.api("PUT", f"{ACCOUNTS}/inner-user", admin=True)["text"]
    assert "changed on broker-a; broker-b has no such access key" in changed

    for key in ("inner-user", "shop-app"):
        said = site.api("POST", f"{ACCOUNTS}/{key}/copy", like="broker-a")["text"]
        assert f"account {key} is on broker-b as on broker-a" == said

    assert [] == [a for a in site.api("GET", ACCOUNTS)["accounts"]
                  if a["differs"] or a["missingOn"]]  # fmt: skip
    copied = account(cluster, "broker-b", "shop-app") or {}
    assert ("shop-secret", ["orders=PUB|SUB", "prices=SUB"]) == (
        copied["secretKey"], copied["topicPerms"],
    )  # fmt: skip


def test_the_white_list_is_replaced(site: Site, cluster: GantryCluster) -> None:
    """On all brokers, checked before; each broker's own list is shown where they differ."""
    assert [(["broker-a", "broker-b"], ["10.9.9.*"])] == _white(site)
    said = site.api("PUT", WHITE, addresses=["10.1.*.*", " 10.2.2.2 "])["text"]
    assert "no key is needed from 10.1.*.*, 10.2.2.2 on broker-a, broker-b" == said
    refused(site.call("PUT", WHITE, addresses=["somewhere"]), 400)
    refused(site.call("PUT", WHITE, addresses=["10.0.0.1,10.0.0.2"]), 400, "by itself")
    refused(site.call("PUT", WHITE, addresses=[], file="/etc/passwd"), 404, "has an access file")

    told(cluster, "put_white_addresses", "broker-b", [])
    assert [(["broker-a"], ["10.1.*.*", "10.2.2.2"]), (["broker-b"], [])] == _white(site)


def _white(site: Site) -> list[tuple[list[str], list[str]]]:
    return [(each["brokers"], each["addresses"]) for each in site.api("GET", WHITE)["lists"]]


def test_each_of_several_files_has_a_white_list(site: Site, tmp_path: Path) -> None:
    """They are named where a broker has more than its main file."""
    assert [] == site.api("GET", WHITE)["files"]
    more = tmp_path / "a" / "acl" / "more.yml"
    more.parent.mkdir()
    more.write_text("globalWhiteRemoteAddresses: [10.7.7.7]\n")

    files = until(lambda: site.api("GET", WHITE)["files"])

    assert [str(more), str(tmp_path / "a" / "plain_acl.yml")] == files
    said = site.api("PUT", WHITE, addresses=["10.8.8.8"], file=str(more))["text"]
    assert said.endswith("10.8.8.8 on broker-a")
    assert (["broker-b"], ["10.9.9.*"]) in _white(site)
    assert (["broker-a"], ["10.8.8.8", "10.9.9.*"]) in _white(site)


def test_one_broker_that_fails_is_named(site: Site, cluster: GantryCluster) -> None:
    """The others are changed; the same question again does the rest."""
    with dead_broker(cluster, "broker-z"):
        failed = site.call("PUT", f"{ACCOUNTS}/shop-app", secretKey="other-secret")
        refused(failed, 409, "done on broker-a, broker-b; failed on broker-z")
        assert "other-secret" not in failed.text
        assert ["broker-z"] == list(site.api("GET", ACCOUNTS)["silent"])
    assert "other-secret" == (account(cluster, "broker-b", "shop-app") or {})["secretKey"]


def test_users_may_be_made_before_a_switch(site: Site, cluster: GantryCluster) -> None:
    """A broker with access files keeps users that are not in force, and says both."""
    site.api("POST", f"{RIGHTS}/users", user="shop", password="new-app-secret")

    (first, _) = site.api("GET", RIGHTS)["brokers"]
    assert ("accounts", 1, 3) == (first["kind"], first["users"], first["accounts"])
    restart(cluster, "broker-b", acl_enable=False)
    found = site.api("GET", RIGHTS)
    assert (["accounts", "none"], True) == ([b["kind"] for b in found["brokers"]], found["isMixed"])
    assert "added on broker-a" in site.api(
        "POST", ACCOUNTS, accessKey="new-app", secretKey="new-app-secret"
    )["text"]  # fmt: skip


def test_secrets_are_in_no_answer_and_not_in_the_trail(site: Site, tmp_path: Path) -> None:
    """Of secret keys the audit trail has lengths."""
    said = [
        site.call("POST", ACCOUNTS, accessKey="new-app", secretKey="new-app-secret").text,
        site.call("PUT", f"{ACCOUNTS}/new-app", secretKey="other-secret").text,
        site.call("POST", f"{ACCOUNTS}/new-app/copy", like="broker-b").text,
    ]
    paths = (RIGHTS, ACCOUNTS, f"{ACCOUNTS}/new-app", f"{ACCOUNTS}/new-app/deletion", WHITE)
    said += [site.call("GET", path).text for path in paths]
    said.append(site.call("DELETE", f"{ACCOUNTS}/new-app", confirm="new-app").text)
    trail = (tmp_path / "console" / "audit.jsonl").read_text()

    assert [] == [secret for secret in SECRETS if secret in " ".join(said) + trail]
    assert '"secretKey":"(14 characters)"' in trail
