"""What the commands of `gantry pipeline` share: where Spark runs, how much is said, how it ends."""

import asyncio
import functools
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from gantrymq.base.errors import GantryError
from gantrymq.cli.common.output import INTERRUPTED, fail
from gantrymq.client.core.errors import NoNameServer

if TYPE_CHECKING:
    from gantrymq.pipelines.common.progress import RunProgress


NAMESRV_SECONDS_MAX: Final = 4.0


async def _check_namesrv(namesrv: str) -> None:
    from gantrymq.client.admin.admin import Admin  # only who names a cluster needs it

    try:
        async with asyncio.timeout(NAMESRV_SECONDS_MAX), Admin(namesrv) as admin:
            await admin.cluster()
    except TimeoutError:
        raise NoNameServer(
            f"no name server answers at {namesrv} within {NAMESRV_SECONDS_MAX:.0f} s: is the "
            "address right?"
        ) from None


@dataclass(frozen=True)
class Run:
    """How a command was asked to run; given to it by `spark_options` as `run`."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False
    verbose: bool = False

    def progress(self) -> "RunProgress":
        """Where the command tells how far it is."""
        from gantrymq.pipelines.common.progress import progress_on

        return progress_on(sys.stderr, quiet=self.quiet)

    @contextmanager
    def session(
        self, app: str, settings: Mapping[str, str] | None = None, *, namesrv: str | None = None
    ) -> Iterator[Any]:
        """A Spark session for the command; the user's settings go before the command's.

        A name server that does not answer is told before Spark is started.
        """
        with self.ending():
            if namesrv:
                asyncio.run(_check_namesrv(namesrv))
            from gantrymq.pipelines.common.running import (
                spark_run,  # Spark is loaded by who uses it
            )

            chosen = {**(settings or {}), **self.settings}
            with spark_run(
                f"gantry {app}", master=self.master, settings=chosen, verbose=self.verbose
            ) as spark:
                yield spark

    @contextmanager
    def watched(self, spark: Any, progress: "RunProgress") -> Iterator[None]:
        """Show how far Spark's own jobs are while a block runs; with it the progress ends."""
        from gantrymq.pipelines.common.watching import watching

        with watching(spark, progress):
            yield

    @contextmanager
    def ending(self) -> Iterator[None]:
        """One line and exit code 1 for what failed, 130 for Ctrl-C."""
        try:
            yield
        except GantryError as error:
            if self.verbose:
                traceback.print_exc()
            fail(error)
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of where and how Spark runs to a command; it gets them as `run`."""

    @click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[4], spark://host:7077, "
        "yarn, k8s://..., sc://host (Connect); else this machine.",
    )
    @click.option(
        "--conf",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_pairs,
        help="A setting of Spark's; may be given often.",
    )
    @click.option(
        "--bundle",
        metavar="FILE",
        help="What `gantry pipeline bundle` wrote, for executors that do not have gantrymq.",
    )
    @click.option("--driver-memory", metavar="SIZE", help="Heap of the driver, such as 2g.")
    @click.option("--progress/--quiet", "shown", default=True, help="Say how far it is, or not.")
    @click.option("-v", "--verbose", is_flag=True, help="Show Spark's log and full tracebacks.")
    @functools.wraps(command)
    def with_run(
        *args: Any,
        master: str | None,
        settings: dict[str, str],
        bundle: str | None,
        driver_memory: str | None,
        shown: bool,
        verbose: bool,
        **rest: Any,
    ) -> Any:
        if driver_memory is not None:
            settings = {"spark.driver.memory": driver_memory, **settings}
        if bundle is not None:
            settings = {**_bundled(bundle), **settings}
        run = Run(master, settings, quiet=not shown, verbose=verbose)
        return command(*args, run=run, **rest)

    return with_run


def _bundled(file: str) -> dict[str, str]:
    """The settings that hand a bundle to executors."""
    from gantrymq.spark.runtime.bundle import bundle_settings

    try:
        return bundle_settings(file)
    except GantryError as error:
        raise click.BadParameter(str(error), param_hint="--bundle") from error


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE`s as a dictionary."""
    pairs = {}
    for value in values:
        key, equals, setting = value.partition("=")
        if not equals or not key.startswith("spark."):
            raise click.BadParameter(f"{value!r} is not spark.KEY=VALUE")
        pairs[key] = setting
    return pairs
