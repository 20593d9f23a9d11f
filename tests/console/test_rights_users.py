"""Users and policies of 5.3 through the API: lists, changes of all brokers, and differences."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from consolekit import NAME, Reply, Site, console
from rightskit import (
    RIGHTS,
    ROOT,
    ROOT_SECRET,
    break_disk,
    cluster_with_users,
    dead_broker,
    restart,
    told,
)

from gantrymq import Message
from gantrymq.access.credentials import Credentials
from gantrymq.client.core.errors import SendFailed
from gantrymq.client.core.options import ClientOptions
from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import UsersFile
from gantrymq.console.settings import LoginKind
from gantrymq.protocol.bodies import UserInfo
from gantrymq.sync import Producer
from gantrymq.testing.threaded import GantryCluster

USERS = f"{RIGHTS}/users"
SECRETS = (ROOT_SECRET, "inner-secret", "shop-secret", "other-secret", "third-secret")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[GantryCluster]:
    with cluster_with_users(monkeypatch, brokers=2) as found:
        yield found


@pytest.fixture
def site(cluster: GantryCluster, tmp_path: Path) -> Iterator[Site]:
    with console(cluster, data=tmp_path) as found:
        yield found


def refused(reply: Reply, status: int, *words: str) -> None:
    assert status == reply.status, reply.text
    for each in words:
        assert each in reply.text


def create(site: Site, name: str = "shop", password: str = "shop-secret", **more: Any) -> str:
    text: str = site.api("POST", USERS, user=name, password=password, **more)["text"]
    return text


def put(site: Site, resource: str, *actions: str, **more: Any) -> str:
    text: str = site.api(
        "PUT", f"{USERS}/shop/policies", resource=resource, actions=actions, **more
    )["text"]
    return text


def send(cluster: GantryCluster, name: str, password: str) -> str:
    """How a send of a user ends."""
    client = ClientOptions(credentials=Credentials(name, password))
    with Producer(cluster.namesrv, group="shop", client=client) as producer:
        try:
            return str(producer.send(Message("orders", b"x")).status)
        except SendFailed as failed:
            return str(failed)


def test_every_broker_says_which_access_control_it_has(site: Site, cluster: GantryCluster) -> None:
    """Users are in force on one, and none on the other, with what turns it on."""
    both = site.api("GET", RIGHTS)
    assert [("broker-a", "users", True, 2), ("broker-b", "users", True, 2)] == [
        (each["name"], each["kind"], each["checksPolicies"], each["users"])
        for each in both["brokers"]
    ]
    assert (False, None) == (both["isMixed"], both["advice"])

    restart(cluster, "broker-b", authentication_enabled=False, authorization_enabled=False)

    mixed = site.api("GET", RIGHTS)
    assert ["users", "none"] == [each["kind"] for each in mixed["brokers"]]
    assert (True, None) == (mixed["isMixed"], mixed["brokers"][1]["users"])
    assert "gantry up --secure" in mixed["advice"]
    assert "authenticationEnabled=true" in mixed["advice"]


def test_a_user_is_made_on_every_broker_and_may_log_in(site: Site, cluster: GantryCluster) -> None:
    """The password counts on all brokers, and the policy that is put decides what it may do."""
    assert "on broker-a, broker-b" in create(site)
    cluster.create_topic("orders")
    assert "has no permission" in send(cluster, "shop", "shop-secret")

    said = put(site, "Topic:orders", "Pub")

    assert "Allow Pub on Topic:orders, on broker-a, broker-b" in said
    assert "SEND_OK" == send(cluster, "shop", "shop-secret")
    assert "check signature failed" in send(cluster, "shop", "wrong-secret")
    found = site.api("GET", USERS, search="SH")
    assert [("shop", "Normal", "enable", 1, [], [])] == [
        (u["user"], u["type"], u["status"], u["rules"], u["missingOn"], u["differsIn"])
        for u in found["users"]
    ]
    assert ["inner-user", ROOT, "shop"] == [u["user"] for u in site.api("GET", USERS)["users"]]
    second = site.api("GET", USERS, limit=2, offset=2)
    assert (["shop"], 3) == ([each["user"] for each in second["users"]], second["count"])


def test_a_user_is_changed(site: Site, cluster: GantryCluster) -> None:
    """Type, status and password, each without the others."""
    create(site)
    cluster.create_topic("orders")

    site.api("PUT", f"{USERS}/shop", type="Super")
    assert "SEND_OK" == send(cluster, "shop", "shop-secret")
    site.api("PUT", f"{USERS}/shop", password="other-secret")
    assert "check signature failed" in send(cluster, "shop", "shop-secret")
    assert "SEND_OK" == send(cluster, "shop", "other-secret")
    said = site.api("PUT", f"{USERS}/shop", status="disable")["text"]
    assert "User:shop is disabled" in send(cluster, "shop", "other-secret")

    assert "user shop is changed on broker-a, broker-b" == said
    assert [("broker-a", "Super", "disable"), ("broker-b", "Super", "disable")] == [
        (each["broker"], each["type"], each["status"])
        for each in site.api("GET", f"{USERS}/shop")["brokers"]
    ]


def test_policies_are_put_replaced_and_removed(site: Site) -> None:
    """One entry for each resource and policy; names, sources and types come back as they are."""
    create(site)
    put(site, "Topic:orders", "Pub", "Sub")
    put(site, "topic:orders", "Sub", decision="Deny", sources=["10.0.0.0/8", "10.0.0.0/8"])
    put(site, "Group:*", "All", policyType="Default")
    put(site, "*", "Get")

    found = site.api("GET", f"{USERS}/shop")
    assert [
        ("Custom", "*", ["Get"], [], "Allow"),
        ("Custom", "Topic:orders", ["Sub"], ["10.0.0.0/8"], "Deny"),
        ("Default", "Group:*", ["All"], [], "Allow"),
    ] == [
        (each["policyType"], each["resource"], each["actions"], each["sources"], each["decision"])
        for each in found["policies"]
    ]
    assert all(each["isEverywhere"] for each in found["policies"])

    wrong_type = site.call("DELETE", f"{USERS}/shop/policies", resource="Group:*")
    refused(wrong_type, 404, "no entry about Group:*")
    said = site.api("DELETE", f"{USERS}/shop/policies", resource="Group:*", policyType="Default")
    assert "is removed on broker-a, broker-b" in said["text"]
    left = site.api("GET", f"{USERS}/shop")["policies"]
    assert ["*", "Topic:orders"] == [each["resource"] for each in left]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"resource": "orders", "actions": ["Pub"]}, "is no resource"),
        ({"resource": "Topic:", "actions": ["Pub"]}, "is no resource"),
        ({"resource": "Topic:a*b*", "actions": ["Pub"]}, "is no resource"),
        ({"resource": "Topic:a*b", "actions": ["Pub"]}, "is no resource"),
        ({"resource": "Any:x", "actions": ["Pub"]}, "is no resource"),
        ({"resource": "Topic:a", "actions": []}, "actions"),
        ({"resource": "Topic:a", "actions": ["Read"]}, "actions"),
        ({"resource": "Topic:a", "actions": ["Pub"], "decision": "Maybe"}, "decision"),
        ({"resource": "Topic:a", "actions": ["Pub"], "sources": ["here"]}, "neither an address"),
        ({"resource": "Topic:a", "actions": ["Pub"], "policyType": "Other"}, "policyType"),
    ],
)
def test_a_policy_without_sense_is_refused(
    site: Site, question: dict[str, Any], words: str
) -> None:
    """Before any broker is asked."""
    create(site)

    refused(site.call("PUT", f"{USERS}/shop/policies", **question), 400, words)
    assert [] == site.api("GET", f"{USERS}/shop")["policies"]


def test_a_user_without_sense_is_refused(site: Site) -> None:
    """Names that no address can have, empty passwords, types that nobody knows, empty changes."""
    create(site)
    for wrong in (
        {"user": "a/b", "password": "x"},
        {"user": "", "password": "x"},
        {"user": "new", "password": ""},
        {"user": "new", "password": " x"},
        {"user": "new", "password": "x", "type": "Root"},
        {"user": "new"},
        {"user": "shop", "password": "other-secret"},
    ):
        refused(site.call("POST", USERS, **wrong), 400)
    refused(site.call("PUT", f"{USERS}/shop"), 400, "say what to change")
    refused(site.call("PUT", f"{USERS}/shop", password="x "), 400, "no space")
    refused(site.call("PUT", f"{USERS}/nobody", type="Super"), 404, "no broker has a user")
    refused(site.call("GET", f"{USERS}/nobody"), 404, "no broker has a user 'nobody'")
    policy = site.call("PUT", f"{USERS}/nobody/policies", resource="*", actions=["All"])
    refused(policy, 404)
    assert ["inner-user", ROOT, "shop"] == [u["user"] for u in site.api("GET", USERS)["users"]]


def test_a_user_is_deleted_with_its_policies(site: Site, cluster: GantryCluster) -> None:
    """The preview tells what goes; the name has to be typed."""
    create(site)
    put(site, "Topic:orders", "Pub")

    loss = site.api("GET", f"{USERS}/shop/deletion")
    assert {"Allow Pub on Topic:orders": 2} == loss["policies"]
    assert "the user on broker-a, broker-b, with 1 policy entry" == loss["text"]
    wrong = site.call("DELETE", f"{USERS}/shop", confirm="shops")
    refused(wrong, 400, "type the name 'shop' to confirm")
    assert told(cluster, "get_user", "broker-b", "shop") is not None

    assert "deleted: user shop" in site.api("DELETE", f"{USERS}/shop", confirm="shop")["text"]

    assert [None, None] == [told(cluster, "get_user", f"broker-{n}", "shop") for n in "ab"]
    refused(site.call("DELETE", f"{USERS}/shop", confirm="shop"), 404)


def test_nobody_locks_themselves_out(site: Site, cluster: GantryCluster) -> None:
    """The user of the console and the last super user of a broker stay, enabled and super."""
    for method, question in (
        ("DELETE", {"confirm": ROOT}), ("PUT", {"status": "disable"}), ("PUT", {"type": "Normal"}),
    ):  # fmt: skip
        refused(site.call(method, f"{USERS}/{ROOT}", **question), 400, "asks with the key of")
    refused(site.call("GET", f"{USERS}/{ROOT}/deletion"), 400)
    assert site.api("GET", f"{USERS}/{ROOT}")["isOwn"]

    own = site.api("PUT", f"{USERS}/{ROOT}", password="third-secret")
    assert "give it the new one" in own["text"]


def test_the_last_super_user_stays(cluster: GantryCluster, tmp_path: Path) -> None:
    """Whoever asks: it can neither be deleted nor disabled, on any broker."""
    with console(cluster, data=tmp_path, login=LoginKind.CLUSTER) as site:
        log_in(site, ROOT, ROOT_SECRET)
        create(site)
        put(site, "Cluster:*", "All")
        site.api("PUT", f"{USERS}/inner-user", type="Normal")
        log_in(site, "shop", "shop-secret")
        for method, question in (("DELETE", {"confirm": ROOT}), ("PUT", {"status": "disable"})):
            refused(
                site.call(method, f"{USERS}/{ROOT}", **question),
                400,
                f"broker-a would have no super user that is enabled without {ROOT}",
            )


def test_differences_between_brokers_are_shown_and_mended(
    site: Site, cluster: GantryCluster
) -> None:
    """A user on one broker only, other passwords, types and policies; a copy mends them."""
    create(site)
    put(site, "Topic:orders", "Pub")
    told(cluster, "create_user", "broker-b", UserInfo(username="lonely", password="x"))
    change = UserInfo(username="shop", password="other-secret", user_type="Super")
    told(cluster, "update_user", "broker-b", change)
    told(cluster, "delete_acl", "broker-b", "User:shop", "Topic:orders")

    lonely, shop = (
        next(u for u in site.api("GET", USERS)["users"] if u["user"] == name)
        for name in ("lonely", "shop")
    )
    assert (["broker-a"], []) == (lonely["missingOn"], lonely["differsIn"])
    assert ("Normal/Super", ["type", "password", "policies"]) == (shop["type"], shop["differsIn"])
    (policy,) = site.api("GET", f"{USERS}/shop")["policies"]
    assert (["broker-a"], False) == (policy["brokers"], policy["isEverywhere"])
    changed = site.api("PUT", f"{USERS}/lonely", status="disable")["text"]
    assert "changed on broker-b; broker-a has no such user" in changed

    refused(site.call("POST", f"{USERS}/shop/copy", like="broker-x"), 400, "no broker 'broker-x'")
    refused(site.call("POST", f"{USERS}/lonely/copy", like="broker-a"), 404)
    copied = site.api("POST", f"{USERS}/shop/copy", like="broker-a")["text"]
    assert "user shop is on broker-b as on broker-a" == copied
    site.api("POST", f"{USERS}/lonely/copy", like="broker-b")

    assert [] == [u for u in site.api("GET", USERS)["users"] if u["missingOn"] or u["differsIn"]]
    assert "shop-secret" == told(cluster, "get_user", "broker-b", "shop").password
    assert "disable" == told(cluster, "get_user", "broker-a", "lonely").user_status
    site.api("DELETE", f"{USERS}/shop/policies", resource="Topic:orders")
    told(cluster, "update_user", "broker-a", UserInfo(username="shop", user_status="disable"))
    site.api("POST", f"{USERS}/shop/copy", like="broker-b")
    assert "enable" == told(cluster, "get_user", "broker-a", "shop").user_status


def test_a_broker_that_fails_is_named_and_the_change_can_be_repeated(
    site: Site, cluster: GantryCluster
) -> None:
    """Those that are done stay done; the same question again does the rest."""
    break_disk(cluster, "broker-b")

    failed = site.call("POST", USERS, user="shop", password="shop-secret")

    refused(failed, 409, "done on broker-a; failed on broker-b", "access.json")
    assert [True, False] == [
        told(cluster, "get_user", f"broker-{name}", "shop") is not None for name in "ab"
    ]
    folder = Path(cluster.cluster.config_of("broker-b").store_path_root_dir) / "config"
    (folder / "access.json.tmp").rmdir()
    assert "created on broker-b" in create(site)
    again = site.call("POST", USERS, user="shop", password="shop-secret")
    refused(again, 400, "broker-a, broker-b has a user shop already")


def test_a_broker_that_is_dead_is_named(site: Site, cluster: GantryCluster) -> None:
    """Lists say that its users are missing; a change says that it was not made there."""
    with dead_broker(cluster, "broker-z"):
        assert "unknown" == site.api("GET", RIGHTS)["brokers"][2]["kind"]
        assert ["broker-z"] == list(site.api("GET", USERS)["silent"])
        failed = site.call("POST", USERS, user="shop", password="shop-secret")
        refused(failed, 409, "done on broker-a, broker-b; failed on broker-z")
        assert [] == site.api("GET", f"{USERS}/shop")["missingOn"]


def test_slaves_have_users_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change goes to masters and slaves, and a slave has its id in its name."""
    with cluster_with_users(monkeypatch, slaves=1) as cluster, console(cluster) as site:
        assert "created on broker-a, broker-a/1" in create(site)
        assert told(cluster, "get_user", "broker-a-s1", "shop") is not None


def test_a_cluster_without_access_control_says_how_to_turn_it_on(gantry: GantryCluster) -> None:
    """Lists are empty, and changes are refused with the way."""
    with console(gantry) as site:
        found = site.api("GET", RIGHTS)
        assert ["none"] == [each["kind"] for each in found["brokers"]]
        assert (0, {}) == (site.api("GET", USERS)["count"], site.api("GET", USERS)["silent"])
        reply = site.call("POST", USERS, user="shop", password="shop-secret")
        refused(reply, 400, "keeps users: start a new cluster with `gantry up --secure`")
        decided = site.api("GET", f"{RIGHTS}/decision", user="x", action="Pub", resource="Topic:a")
        assert [("Allow", "no access control")] == [
            (each["decision"], each["rule"]) for each in decided["decisions"]
        ]


def test_it_is_explained_which_rule_decides(site: Site, cluster: GantryCluster) -> None:
    """For each broker, by its own rules, and why others do not decide."""
    create(site)
    put(site, "Topic:*", "Pub")
    put(site, "Topic:orders", "Pub", decision="Deny", sources=["10.0.0.0/8"])

    def ask(**question: str) -> list[tuple[str, str]]:
        found = site.api("GET", f"{RIGHTS}/decision", **{"action": "Pub", **question})
        return [(each["decision"], each["rule"]) for each in found["decisions"]]

    allowed = ("Allow", "Custom: Allow Pub on Topic:*")
    denied = ("Deny", "Custom: Deny Pub on Topic:orders from 10.0.0.0/8")
    assert [allowed] * 2 == ask(user="shop", resource="Topic:orders")
    assert [denied] * 2 == ask(user="shop", resource="Topic:orders", address="10.1.2.3")
    assert "Deny" == ask(user="nobody", resource="Topic:orders")[0][0]
    wrong = site.call("GET", f"{RIGHTS}/decision", user="shop", action="Pub", resource="Topic:*")
    refused(wrong, 400, "write Topic:NAME")
    with dead_broker(cluster, "broker-z"):
        assert (None, "") == ask(user="shop", resource="Topic:orders")[2]


def test_secrets_are_in_no_answer_and_not_in_the_trail(
    site: Site, cluster: GantryCluster, tmp_path: Path
) -> None:
    """Of passwords the audit trail has lengths; every change stands in it, failed ones too."""
    said = [create(site), str(site.api("PUT", f"{USERS}/shop", password="other-secret"))]
    break_disk(cluster, "broker-b")
    said.append(site.call("PUT", f"{USERS}/shop", password="third-secret").text)
    paths = (RIGHTS, USERS, f"{USERS}/shop", f"{USERS}/shop/deletion", f"{USERS}/{ROOT}")
    said += [site.call("GET", path).text for path in paths]
    trail = (tmp_path / "audit.jsonl").read_text()

    assert [] == [secret for secret in SECRETS if secret in " ".join(said) + trail]
    assert [("create_user", None), ("update_user", None)] == [
        (each["act"], each.get("error")) for each in _entries(site)[:2]
    ]
    assert "(11 characters)" == _entries(site)[0]["asked"]["password"]
    assert "failed on broker-b" in _entries(site)[2]["error"]


def _entries(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.api("GET", "/audit")["entries"]
    return found[::-1]


def test_readers_see_nobodys_rights(cluster: GantryCluster, tmp_path: Path) -> None:
    """Every question about rights and every change of them is refused."""
    UsersFile(tmp_path / "users.json").put("bob", Role.READER, "bob's password")
    with console(cluster, data=tmp_path, login=LoginKind.USERS) as site:
        reply = site.act("/login", name="bob", password="bob's password")
        site.headers["cookie"] = reply.headers["set-cookie"].partition(";")[0]
        for path in ("", "/users", f"/users/{ROOT}", f"/users/{ROOT}/deletion", "/accounts",
                     "/accounts/shop-app", "/white-addresses"):  # fmt: skip
            refused(site.call("GET", RIGHTS + path), 403, "bob is a reader")
        decision = {"user": "x", "action": "Pub", "resource": "Topic:a"}
        refused(site.call("GET", f"{RIGHTS}/decision", **decision), 403)
        refused(site.call("POST", USERS, user="shop", password="x"), 403, "may look")
        refused(site.call("DELETE", f"{USERS}/{ROOT}", confirm=ROOT), 403)
        assert 403 == site.ask("GET", f"/c/{NAME}/rights").status


def test_with_keys_of_the_cluster_its_brokers_decide(
    cluster: GantryCluster, tmp_path: Path
) -> None:
    """A normal user is refused by them, a super user sees and changes."""
    with console(cluster, data=tmp_path, login=LoginKind.CLUSTER) as site:
        log_in(site, ROOT, ROOT_SECRET)
        create(site)
        put(site, "Cluster:*", "Get")
        shown = site.api("GET", f"{USERS}/shop")
        assert "shop" == shown["user"]
        assert ROOT_SECRET not in str(shown)
        log_in(site, "shop", "shop-secret")
        refused(site.call("PUT", f"{USERS}/shop", type="Super"), 409, "no permission")


def log_in(site: Site, name: str, password: str) -> None:
    site.headers.pop("cookie", None)
    reply = site.act("/login", name=name, password=password)
    assert 303 == reply.status, reply.text
    site.headers["cookie"] = reply.headers["set-cookie"].partition(";")[0]
