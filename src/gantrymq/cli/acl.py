"""`gantry acl`: which rule of access control decides."""

import asyncio

import click

from gantrymq.access.explain import ACTIONS, Explanation
from gantrymq.access.policies import Action, NamePattern, Resource
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import Row, namesrv_option, output_option, print_rows
from gantrymq.cli.mqadmin.values import address as place_of
from gantrymq.client.admin.access_explain import explain_access
from gantrymq.client.admin.admin import Admin


@click.group("acl")
def acl() -> None:
    """Explain which rule of access control decides."""


@acl.command("explain", cls=GuardedCommand)
@click.argument("user")
@click.argument("action", type=click.Choice(ACTIONS, case_sensitive=False))
@click.argument("resource")
@click.option("--address", metavar="IP", default="", help="Where the request comes from.")
@click.option("--broker", metavar="ADDR", help="Only this broker; else every master.")
@namesrv_option
@output_option
def explain(
    user: str,
    action: str,
    resource: str,
    address: str,
    broker: str | None,
    namesrv: str | None,
    output: str,
) -> None:
    """Say whether USER may take ACTION on RESOURCE, and which rule decides.

    USER is a user of RocketMQ 5.3 or an access key of 4.9, as the broker has them. RESOURCE is
    Topic:NAME, Group:NAME or Cluster:NAME. Rules for certain addresses count only with --address.
    """
    wanted, deed = Resource.parse(resource), Action.named(action)
    if wanted is None or deed is None or wanted.pattern is not NamePattern.LITERAL:
        raise click.UsageError(f"{resource}: write Topic:NAME, Group:NAME or Cluster:NAME")

    async def run() -> dict[str, Explanation]:
        async with Admin(namesrv or broker) as admin:
            places = [place_of(broker)] if broker else (await admin.masters()).values()
            return {
                place: await explain_access(admin, place, user, deed, wanted, address)
                for place in places
            }

    rows = [_row(place, found) for place, found in asyncio.run(run()).items()]
    if output != "table":
        print_rows(rows, output)
        return
    for row in rows:
        others = row.pop("others")
        for name, value in row.items():
            print(f"{name:<9} {value}")
        for other in others:
            print(f"{'not':<9} {other}")


def _row(place: str, found: Explanation) -> Row:
    return {
        "broker": place,
        "decision": "Allow" if found.allowed else "Deny",
        "rule": found.rule,
        "why": found.why,
        "others": list(found.others),
    }
