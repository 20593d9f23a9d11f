"""Commands about name servers: key-value table, settings, write permissions of brokers."""

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, command
from gantrymq.cli.mqadmin.output import Column

NAMESPACE = AdminOption("s", "namespace", "Namespace of the key.", required=True)
KEY = AdminOption("k", "key", "The key.", required=True)
VALUE = AdminOption("v", "value", "The value.", required=True)
BROKER_NAME = AdminOption("b", "brokerName", "Name of the broker.", required=True)


@command("updateKvConfig", "Create or update KV config.", NAMESPACE, KEY, VALUE)
async def update_kv_config(call: Invocation) -> None:
    await call.admin.put_kv(call["namespace"], call["key"], call["value"])
    call.out.done("create or update kv config to namespace success.")


@command("deleteKvConfig", "Delete KV config.", NAMESPACE, KEY)
async def delete_kv_config(call: Invocation) -> None:
    await call.admin.delete_kv(call["namespace"], call["key"])
    call.out.done("delete kv config from namespace success.")


@command("wipeWritePerm", "Wipe write perm of broker in all name servers.", BROKER_NAME)
async def wipe_write_perm(call: Invocation) -> None:
    name = call["brokerName"]
    await call.admin.members(broker=name)
    for address, count in (await call.admin.wipe_write_permission(name)).items():
        call.out.done(f"wipe write perm of broker[{name}] in name server[{address}] OK, {count}")


@command("addWritePerm", "Add write perm of broker in all name servers.", BROKER_NAME)
async def add_write_perm(call: Invocation) -> None:
    name = call["brokerName"]
    await call.admin.members(broker=name)
    for address, count in (await call.admin.add_write_permission(name)).items():
        call.out.done(f"add write perm of broker[{name}] in name server[{address}] OK, {count}")


@command("getNamesrvConfig", "Get configs of name server.")
async def get_namesrv_config(call: Invocation) -> None:
    for address, settings in (await call.admin.name_server_configs()).items():
        call.out.text(f"============{address}============")
        row = call.out.table(SETTINGS)
        for key, value in sorted(settings.items()):
            row(key, value, address)


SETTINGS = (
    Column("key", "", 50),
    Column("value", "", show=lambda value: f"=  {value}"),
    Column("address", "", show=lambda address: ""),
)
"""A setting; only JSON names whose it is in each row."""


@command("updateNamesrvConfig", "Update configs of name server.", KEY, VALUE)
async def update_namesrv_config(call: Invocation) -> None:
    key, value = call["key"], call["value"]
    await call.admin.update_name_server_config({key: value})
    call.out.done(f"update name server config success!{call.admin.name_servers}")
    call.out.text(f"{key} : {value}")


COMMANDS = (
    update_kv_config,
    delete_kv_config,
    wipe_write_perm,
    add_write_perm,
    get_namesrv_config,
    update_namesrv_config,
)
