"""What every command does with an error: one line on stderr and an exit code, no traceback."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from gantrymq.base.errors import GantryError

TRACEBACK = "GANTRY_TRACEBACK"
"""Set this in the environment to see where an error came from."""


class GuardedCommand(click.Command):
    """A command that ends with one line whatever happens."""

    def invoke(self, ctx: click.Context) -> Any:
        with guarded():
            return super().invoke(ctx)


@contextmanager
def guarded() -> Iterator[None]:
    """End the process with what went wrong in one line each."""
    try:
        yield
    except (click.exceptions.Exit, click.Abort, click.ClickException):
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise SystemExit(report(error)) from None


def report(error: BaseException) -> int:
    """Say what went wrong; the exit code for it."""
    leaves = leaves_of(error)
    if any(isinstance(leaf, BrokenPipeError) for leaf in leaves):
        # Who read our output has had enough, `head -1` for one: that is no failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    for line in dict.fromkeys(map(describe, leaves)):
        print(f"error: {line}", file=sys.stderr)
    return 1


def leaves_of(error: BaseException) -> list[BaseException]:
    """The errors in a group of groups, in their order."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for part in error.exceptions for leaf in leaves_of(part)]


def describe(error: BaseException) -> str:
    """What happened, in one line."""
    if isinstance(error, GantryError):
        text = str(error)
    elif isinstance(error, OSError):
        what = error.strerror or str(error) or type(error).__name__
        text = f"{error.filename}: {what}" if error.filename else what
    else:
        text = (
            f"{type(error).__name__}: {error}. This is a fault of GantryMQ; "
            f"with {TRACEBACK}=1 the same command shows where"
        )
    return " ".join(text.split())
