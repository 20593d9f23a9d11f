"""`gantry debug bundle`: one archive with all that is needed to look into a trouble."""

import asyncio
import io
import sys
import tarfile
from datetime import datetime
from pathlib import Path

import click

from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import ConfigError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import namesrv_option
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.bundle.support_bundle import (
    BundlePart,
    NothingOfTheCluster,
    SupportBundle,
)


@click.group("debug")
def debug() -> None:
    """Collect what is needed to look into a trouble."""


@debug.command("bundle", cls=GuardedCommand)
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The archive to write; by default gantry-bundle-TIME.tar.gz in this folder.",
)
@namesrv_option
def bundle(path: Path | None, namesrv: str | None) -> None:
    """Write one archive with settings, tables, figures, statistics, findings and logs.

    Secrets are removed. What could not be had stands in missing.json with the reason. Logs are
    those of servers on this machine.
    """
    at = datetime.fromtimestamp(SystemClock().now_ms() / 1000).astimezone()
    target = path or Path(f"gantry-bundle-{at:%Y%m%d-%H%M%S}.tar.gz")
    if target.exists():
        raise ConfigError(f"{target} exists; name another file with -f")
    if not target.absolute().parent.is_dir():
        raise ConfigError(f"{target.absolute().parent} is no folder")
    folder = target.name.removesuffix(".tar.gz")
    fresh = target.with_name(target.name + ".part")
    try:
        with tarfile.open(fresh, "w:gz") as archive:
            missing, count = asyncio.run(_fill(archive, folder, namesrv, at.timestamp()))
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    said = f"{target}: {counted(count, 'part')}"
    print(f"{said}, {len(missing)} missing (missing.json says why)" if missing else said)
    if "brokers" in missing:
        raise NothingOfTheCluster(f"the bundle has nothing of the cluster: {missing['brokers']}")


async def _fill(
    archive: tarfile.TarFile, folder: str, namesrv: str | None, at: float
) -> tuple[dict[str, str], int]:
    count = 0
    async with Admin(namesrv) as admin:
        found = SupportBundle(admin, lambda what: print(f"{what} ...", file=sys.stderr, flush=True))
        async for part in found.parts():
            _add(archive, folder, part, at)
            count += 1
    return found.missing, count


def _add(archive: tarfile.TarFile, folder: str, part: BundlePart, at: float) -> None:
    entry = tarfile.TarInfo(f"{folder}/{part.name}")
    entry.size, entry.mtime, entry.mode = len(part.data), int(at), 0o600
    archive.addfile(entry, io.BytesIO(part.data))
