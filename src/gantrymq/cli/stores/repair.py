"""`gantry store repair`: what is wrong with a store, and how it is mended."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import output_option, print_line, print_table
from gantrymq.cli.stores.options import (
    FINDINGS_CODE,
    Shown,
    log_option,
    path_or_none,
    quiet_option,
    store_argument,
)

if TYPE_CHECKING:
    from gantrymq.store.tools.repair_plan import RepairPlan


@click.command("repair", cls=GuardedCommand)
@store_argument
@log_option
@click.option("--dry-run", is_flag=True, help="Only print the plan, as without --yes.")
@click.option("--yes", is_flag=True, help="Do it.")
@quiet_option
@output_option
def repair(
    folder: Path, log_folder: Path | None, dry_run: bool, yes: bool, quiet: bool, output: str
) -> None:
    """Print how STORE can be repaired, and which messages are lost; with --yes, do it.

    The broker must be stopped. What is changed is saved in STORE/repair first. A repair that was
    killed can be run again. Exit code 1 means that there is something to repair, or left.
    """
    from gantrymq.store.tools.repair import carry_out, locked
    from gantrymq.store.tools.repair_plan import plan_repair

    if yes and dry_run:
        raise click.UsageError("--yes and --dry-run contradict each other")
    display = Shown("parts of the store", quiet=quiet)
    with locked(str(folder)):
        plan = plan_repair(str(folder), path_or_none(log_folder), display.tell)
        display.end()
        saved = carry_out(plan) if yes else ""
    _print(plan, saved, output)
    _tell(plan, saved, done=yes)
    raise SystemExit(FINDINGS_CODE if plan.left or (plan.steps and not yes) else 0)


def _print(plan: "RepairPlan", saved: str, output: str) -> None:
    steps = [each.row() for each in plan.steps]
    lost = [each.row() for each in plan.lost]
    if output == "json":
        whole = {"steps": steps, "lost": lost, "left": plan.left, "saved": saved or None}
        sys.stdout.write(json.dumps(whole, ensure_ascii=False, indent=2) + "\n")
    elif output == "jsonl":
        for row in (*steps, *({"lost": row} for row in lost)):
            print_line(row)
    else:
        for table in (steps, lost):
            print_table(table)


def _tell(plan: "RepairPlan", saved: str, *, done: bool) -> None:
    for text in plan.left:
        print(f"left: {text}", file=sys.stderr)
    if not plan.steps:
        print(f"{plan.directory}: there is nothing to repair", file=sys.stderr)
        return
    lost = sum(each.count for each in plan.lost)
    said = f"{counted(len(plan.steps), 'step')}, {counted(lost, 'message')} lost"
    if lost and plan.log_steps:
        print("a slave or a copy that has these messages is better than a repair", file=sys.stderr)
    print(f"{said}; {f'done, saved in {saved}' if done else 'say --yes to do it'}", file=sys.stderr)
