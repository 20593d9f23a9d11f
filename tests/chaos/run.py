"""The command: takes modes through faults, prints a line for each trial and the broken promises.

Exit codes are 0, 1 (a promise was broken) and 2 (something that is needed is missing).
"""

import random
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import FrameType

import click

from chaos import table
from chaos.clients import ClientFailed
from chaos.cluster import Cluster, MakeDisk, NotSettled
from chaos.disk import InjectedDisk, LoopDisk, why_no_loop_disks
from chaos.faults import DISK, FAULTS
from chaos.java import build_writer
from chaos.loopback import Loopback
from chaos.modes import MODES, Mode
from chaos.network import Missing, Namespaces, Network, why_no_namespaces
from chaos.nodes import NodeFailed
from chaos.promises import TrialResult, broken_promises
from chaos.trial import Trial

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
TROUBLE = (ClientFailed, NodeFailed, NotSettled)


NEEDS_REPAIR = ("disk-read-only",)
"""Faults after which a master may lack what its slave has: an operator has to choose one of them,
so the next fault gets a new cluster."""


MakeHosts = Callable[[Sequence[str], int], Network]


class Interrupted(Exception):
    """The run is to end."""


@dataclass(frozen=True)
class Plan:
    """What is asked for."""

    modes: Sequence[str]
    faults: Sequence[str]
    seconds: float
    seeds: Sequence[int]
    """One round of all faults for each."""
    jobs: int
    network: MakeHosts
    """Makes hosts, given their names and a seed."""
    disk: MakeDisk
    java: bool
    keep: bool

    @property
    def needs_disks(self) -> bool:
        return any(fault.name in self.faults for fault in DISK)


class Run:
    """All modes, some of them side by side."""

    def __init__(self, plan: Plan, root: Path) -> None:
        self._plan, self._root = plan, root
        self._java = build_writer(root) if plan.java else None
        self._stop = threading.Event()
        self._print_lock = threading.Lock()
        self.results: list[TrialResult] = []
        self.broken: list[str] = []

    def stop(self, _signum: int = 0, _frame: FrameType | None = None) -> None:
        self._stop.set()

    @property
    def interrupted(self) -> bool:
        return self._stop.is_set()

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Interrupted

    def _say(self, text: str) -> None:
        with self._print_lock:
            click.echo(text)

    def run(self) -> None:
        self._say(table.heading())
        with ThreadPoolExecutor(self._plan.jobs) as pool:
            for done in [pool.submit(self._run_mode, MODES[name]) for name in self._plan.modes]:
                done.result()

    def _run_mode(self, mode: Mode) -> None:
        """One fault after the other on one cluster; after trouble on a new one."""
        cluster: Cluster | None = None
        try:
            for at, (seed, fault) in enumerate(product(self._plan.seeds, self._plan.faults)):
                self._pause(0)
                try:
                    cluster = cluster or self._build(mode, at)
                    trial = Trial(cluster, FAULTS[fault], seed, self._pause)
                    self._judge(mode, trial.run(self._plan.seconds))
                    if fault in NEEDS_REPAIR:
                        cluster.close()
                        cluster = None
                except TROUBLE as error:
                    self._accuse(mode.name, fault, f"{type(error).__name__}: {error}")
                    if cluster is not None:
                        cluster.close()
                        cluster = None
        except Interrupted:
            return
        except Missing:
            self.stop()
            raise
        except Exception:
            self._accuse(mode.name, "-", traceback.format_exc())
            self.stop()
        finally:
            if cluster is not None:
                cluster.close()

    def _build(self, mode: Mode, at: int) -> Cluster:
        rng = random.Random(f"{self._plan.seeds[0]}/{mode.name}/{at}")

        def make_network(hosts: Sequence[str]) -> Network:
            return self._plan.network(hosts, rng.getrandbits(32))

        return Cluster(
            mode,
            make_network,
            self._root / f"{mode.name}-{at}",
            java=self._java,
            make_disk=self._plan.disk if self._plan.needs_disks else None,
        )

    def _judge(self, mode: Mode, result: TrialResult) -> None:
        self.results.append(result)
        self._say(table.line(result))
        for text in broken_promises(mode, result):
            self._accuse(mode.name, result.fault, text)

    def _accuse(self, mode: str, fault: str, text: str) -> None:
        self.broken.append(f"{mode}, {fault}: {text}")
        self._say(f"BROKEN {self.broken[-1]}")


@click.command()
@click.option(
    "--mode", "modes", multiple=True, type=click.Choice(list(MODES)), help="Default: all."
)
@click.option("--fault", "faults", multiple=True, type=click.Choice(list(FAULTS)))
@click.option("--seconds", default=4.0, show_default=True, help="How long each fault lasts.")
@click.option("--seed", default=1, show_default=True, help="Chooses the nodes that are hit.")
@click.option("--rounds", default=1, show_default=True, help="All faults again, by the next seeds.")
@click.option("--jobs", default=4, show_default=True, help="Modes at once.")
@click.option("--hosts", default="auto", type=click.Choice(["auto", "namespaces", "loopback"]))
@click.option("--java/--no-java", default=True, help="Whether a Java client writes as well.")
@click.option("--keep", is_flag=True, help="Keep stores and logs, and say where.")
@click.option("--write-page", is_flag=True, help="Write the tables into docs/reliability.md.")
def main(
    modes: tuple[str, ...],
    faults: tuple[str, ...],
    seconds: float,
    seed: int,
    rounds: int,
    jobs: int,
    hosts: str,
    java: bool,
    keep: bool,
    write_page: bool,
) -> None:
    """Take modes through faults and judge what was kept."""
    seeds = range(seed, seed + rounds)
    plan = Plan(
        modes or list(MODES),
        faults or list(FAULTS),
        seconds,
        seeds,
        jobs,
        *_hosts_and_disks(hosts),
        java,
        keep,
    )
    sys.exit(carry_out(plan, write_page=write_page))


def _hosts_and_disks(hosts: str) -> tuple[MakeHosts, MakeDisk]:
    """The real ones where they can be had; it is said what is not real, and why."""
    missing = why_no_namespaces()
    if hosts == "namespaces" and missing is not None:
        raise click.UsageError(missing)
    if hosts == "loopback" or missing is not None:
        why = missing or "as asked for"
        click.echo(f"hosts are loopback addresses, disks fail at the disk port: {why}")
        return Loopback, InjectedDisk
    missing = why_no_loop_disks()
    if missing is not None:
        click.echo(f"disks fail at the disk port: {missing}")
        return Namespaces, InjectedDisk
    return Namespaces, LoopDisk


def carry_out(plan: Plan, *, write_page: bool) -> int:
    """Run a plan; returns the exit code."""
    root = Path(tempfile.mkdtemp(prefix="gantrymq-chaos-"))
    try:
        run = Run(plan, root)
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, run.stop)
        run.run()
    except Missing as error:
        click.echo(f"chaos: {error}", err=True)
        return 2
    finally:
        if plan.keep:
            click.echo(f"stores and logs are in {root}", err=True)
        else:
            shutil.rmtree(root, ignore_errors=True)
    if run.interrupted:
        click.echo("chaos: ended before its time", err=True)
        return 1
    if write_page:
        PAGE.write_text(table.with_tables(PAGE.read_text(), table.page_tables(run.results)))
    click.echo(f"{len(run.results)} trials, {len(run.broken)} broken promises")
    return 1 if run.broken else 0
