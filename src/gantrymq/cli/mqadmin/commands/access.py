"""Commands about access files: RocketMQ 4.9's accounts, rights and white lists."""

from functools import partial
from typing import Any

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, command
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.targets import BROKER, CLUSTER, ONE_OF, masters, members
from gantrymq.cli.mqadmin.values import secret_key, shown_time

ACCESS_KEY = AdminOption("a", "accessKey", "Access key of the account.", required=True)
HIDDEN = "******"
BY_INPUT = "; - asks for it, or reads a line of standard input."
"""What a list of processes cannot show."""
ACCOUNT = (
    "accessKey", "secretKey", "whiteRemoteAddress", "admin", "defaultTopicPerm",
    "defaultGroupPerm", "topicPerms", "groupPerms",
)  # fmt: skip
VERSIONS = (
    Column("clusterName", "#Cluster Name", 16),
    Column("brokerName", "#Broker Name", 22),
    Column("brokerAddr", "#Broker Addr", 22),
    Column("aclFilePath", "#AclFilePath", 20),
    Column("aclConfigVersionNum", "#AclConfigVersionNum", 22),
    Column("aclLastUpdateTime", "#AclLastUpdateTime", 22, show=shown_time),
)


@command(
    "updateAclConfig",
    "Update acl config yaml file in broker.",
    BROKER,
    CLUSTER,
    ACCESS_KEY,
    AdminOption(
        "s", "secretKey", f"Secret key of the account{BY_INPUT}", required=True, read=secret_key
    ),
    AdminOption("w", "whiteRemoteAddress", "Addresses from which the account needs no signature."),
    AdminOption(
        "i", "defaultTopicPerm", "Right to topics without a rule: DENY, PUB, SUB, PUB|SUB."
    ),
    AdminOption("u", "defaultGroupPerm", "Right to groups without a rule."),
    AdminOption("t", "topicPerms", "Rules of topics, as topicA=DENY,topicD=SUB."),
    AdminOption("g", "groupPerms", "Rules of groups, as groupA=DENY,groupD=SUB."),
    AdminOption("m", "admin", "Whether it is an admin: true or false.", default="false"),
    one_of=ONE_OF,
)
async def update_account(call: Invocation) -> None:
    lists = {
        name: None if call[name] is None else [each for each in call[name].split(",") if each]
        for name in ("topicPerms", "groupPerms")
    }
    for place in await members(call):
        await call.admin.put_account(
            place,
            call["accessKey"].strip(),
            call["secretKey"].strip(),
            admin=call["admin"].strip().lower() == "true",
            white_remote_address=call["whiteRemoteAddress"],
            default_topic_perm=call["defaultTopicPerm"],
            default_group_perm=call["defaultGroupPerm"],
            topic_perms=lists["topicPerms"],
            group_perms=lists["groupPerms"],
        )
        call.out.done(f"create or update plain access config to {place} success.")


@command(
    "deleteAclConfig",
    "Delete acl config account in broker.",
    BROKER,
    CLUSTER,
    ACCESS_KEY,
    one_of=ONE_OF,
)
async def delete_account(call: Invocation) -> None:
    for place in await members(call):
        await call.admin.delete_account(place, call["accessKey"].strip())
        call.out.done(f"delete plain access config account from {place} success.")
    call.out.field("accessKey", call["accessKey"], f"account's accesskey is:{call['accessKey']}")


@command(
    "updateGlobalWhiteAddr",
    "Update global white address for acl Config File in broker.",
    BROKER,
    CLUSTER,
    AdminOption(
        "g", "globalWhiteRemoteAddresses", "Patterns, as 10.10.103.*,192.168.0.*.", required=True
    ),
    AdminOption("p", "aclFileFullPath", "The access file on the broker, if not its main one."),
    one_of=ONE_OF,
)
async def update_white_addresses(call: Invocation) -> None:
    patterns = [each for each in call["globalWhiteRemoteAddresses"].strip().split(",") if each]
    for place in await members(call):
        await call.admin.put_white_addresses(place, patterns, call["aclFileFullPath"] or "")
        call.out.done(f"update global white remote addresses to {place} success.")


@command(
    "clusterAclConfigVersion",
    "List all of acl config version information in cluster.",
    BROKER,
    CLUSTER,
    one_of=ONE_OF,
)
async def versions(call: Invocation) -> None:
    row = call.out.table(VERSIONS)
    for place in await masters(call):
        broker, by_file = await call.admin.access_versions(place)
        for file, version in by_file.items():
            row(broker.cluster_name, broker.broker_name, broker.broker_addr, file,
                version["counter"], version["timestamp"])  # fmt: skip
    call.out.text("get cluster's plain access config version success.")


@command(
    "getAclConfig",
    "List all of acl config information in cluster.",
    BROKER,
    CLUSTER,
    one_of=ONE_OF,
)
async def accounts(call: Invocation) -> None:
    for place in await masters(call):
        found = await call.admin.access_config(place)
        patterns = found.global_white_addrs
        text = f"\nglobalWhiteRemoteAddresses: [{', '.join(patterns)}]\n\naccounts:"
        call.out.field("globalWhiteRemoteAddresses", patterns, text)
        for account in found.plain_access_configs:
            shown = {"admin": False, **account, "secretKey": HIDDEN}
            call.out.item(shown, partial(_lines, shown))


def _lines(account: dict[str, Any]) -> list[str]:
    """The fields of an account, as RocketMQ's tool prints them; it shows secret keys, we do not."""
    return [*(f"  {name:<18}: {_shown(account.get(name))}" for name in ACCOUNT), ""]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return "" if value is None else str(value)


COMMANDS = (update_account, delete_account, update_white_addresses, versions, accounts)
