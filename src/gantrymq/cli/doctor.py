"""`gantry doctor`: find what is wrong with a cluster or a machine, and how to mend it."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import namesrv_option, output_option, print_rows
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.doctor.checks import examine
from gantrymq.client.admin.doctor.collect import take_snapshot
from gantrymq.client.admin.doctor.findings import ORDER, DoctorFinding, Severity
from gantrymq.client.admin.doctor.machine import read_machine
from gantrymq.client.admin.doctor.machine_checks import examine_machine


@click.command("doctor", cls=GuardedCommand)
@click.option("--system", is_flag=True, help="Check this machine instead of a cluster.")
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("~/store"),
    metavar="FOLDER",
    help="With --system: the folder of the store; by default ~/store.",
)
@namesrv_option
@output_option
def doctor(system: bool, store: Path, namesrv: str | None, output: str) -> None:
    """Check a cluster, and say what mends each finding.

    It changes nothing. The exit code is 1 when there is a finding of level error. With --system it
    checks limits, kernel settings and disks of the machine that it runs on.
    """
    if system:
        found = examine_machine(read_machine(store.expanduser()))
    else:
        found = asyncio.run(_examine(namesrv))
    if output == "table":
        _print(found)
    else:
        print_rows([finding.row() for finding in found], output)
    counts = [
        f"{counted(count, severity.value)}"
        for severity in ORDER
        if (count := sum(each.severity is severity for each in found))
    ]
    print(", ".join(counts) or "nothing found", file=sys.stderr)
    if any(each.severity is Severity.ERROR for each in found):
        raise SystemExit(1)


async def _examine(namesrv: str | None) -> list[DoctorFinding]:
    async with Admin(namesrv) as admin:
        return examine(await take_snapshot(admin))


def _print(found: Sequence[DoctorFinding]) -> None:
    """A finding is a line, and its mend the next one: a table would be too wide."""
    for each in found:
        print(f"{each.severity.value:<7}  {each.check}  {each.where}: {each.text}")
        setting = f" ({each.setting})" if each.setting else ""
        if each.mend:
            print(f"{'':<7}  mend{setting}: {each.mend}")
