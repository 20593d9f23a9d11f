"""What the commands of `gantry store` share: the folder, the log's folder, progress on stderr."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from gantrymq.store.tools.dledger import DLedgerFolder

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
NEW_FOLDER = click.Path(path_type=Path, file_okay=False)
F = TypeVar("F", bound=Callable[..., Any])

FINDINGS_CODE = 1


def store_argument(command: F) -> F:
    """The store that a command is about; the command gets `folder`."""
    return click.argument("folder", metavar="STORE", type=FOLDER)(command)


def log_option(command: F) -> F:
    """The option --commit-log; the command gets `log_folder`."""
    return click.option(
        "--commit-log", "log_folder", type=FOLDER, help="storePathCommitLog, if the broker sets it."
    )(command)


quiet_option = click.option("--quiet", is_flag=True, help="No progress on stderr.")


class Shown:
    """Shows on stderr how far a command is; a part of the work after the other."""

    def __init__(self, unit: str, *, quiet: bool) -> None:
        from gantrymq.pipelines.common.progress import progress_on

        self._progress, self._unit = progress_on(sys.stderr, quiet=quiet), unit
        self._total = self._done = 0

    def tell(self, done: int, total: int) -> None:
        """Show that so many parts are done."""
        if total != self._total or done < self._done:
            self._progress.start(total, self._unit)
            self._total, self._done = total, 0
        self._progress.advance(done - self._done)
        self._done = done

    def end(self) -> None:
        """End the display; harmless if nothing was shown."""
        self._progress.done()


def path_or_none(folder: Path | None) -> str:
    """A folder as the tools take it: empty for the usual one."""
    return str(folder) if folder is not None else ""


def ledger_in(folder: Path, log_folder: Path | None) -> "DLedgerFolder | None":
    """The store with the log of a raft group of RocketMQ, if it is one."""
    from gantrymq.store.tools.dledger import DLedgerFolder, dledger_of

    ledger = dledger_of(folder, log_folder)
    return DLedgerFolder(folder, ledger) if ledger is not None else None
