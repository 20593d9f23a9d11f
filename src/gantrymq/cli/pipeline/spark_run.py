"""What the commands of `gantry pipeline` share: the Spark session, progress and errors."""

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
    from gantrymq.client.admin.admin import Admin  # only with a cluster

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
    """How a command runs; `spark_options` passes it to the command as `run`."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False
    verbose: bool = False

    def progress(self) -> "RunProgress":
        """The progress that the command reports to."""
        from gantrymq.pipelines.common.progress import progress_on

        return progress_on(sys.stderr, quiet=self.quiet)

    @contextmanager
    def session(
        self, app: str, settings: Mapping[str, str] | None = None, *, namesrv: str | None = None
    ) -> Iterator[Any]:
        """A Spark session for the command; settings of the user take precedence.

        A name server that does not answer is an error before Spark is started.
        """
        with self.ending():
            if namesrv:
                asyncio.run(_check_namesrv(namesrv))
            from gantrymq.pipelines.common.spark_run import (
                spark_run,  # imports Spark
            )

            chosen = {**(settings or {}), **self.settings}
            with spark_run(
                f"gantry {app}", master=self.master, settings=chosen, verbose=self.verbose
            ) as spark:
                yield spark

    @contextmanager
    def watched(self, spark: Any, progress: "RunProgress") -> Iterator[None]:
        """Show the progress of Spark's jobs while a block runs; the progress ends with it."""
        from gantrymq.pipelines.common.job_progress import watch_jobs

        with watch_jobs(spark, progress):
            yield

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Turn errors of the block into one line and exit code 1, Ctrl-C into 130."""
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
    """Add the options of Spark to a command, which gets them as `run`."""

    @click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[4], spark://host:7077, "
        "yarn, k8s://..., sc://host (Connect); by default this machine.",
    )
    @click.option(
        "--conf",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_pairs,
        help="A setting of Spark; repeatable.",
    )
    @click.option(
        "--bundle",
        metavar="FILE",
        help="A file of `gantry pipeline bundle`, for executors without gantrymq.",
    )
    @click.option("--driver-memory", metavar="SIZE", help="Heap of the driver, such as 2g.")
    @click.option("--progress/--quiet", "shown", default=True, help="Show the progress.")
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
