"""Errors of commands: one line on stderr and an exit code instead of a traceback."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from gantrymq.base.errors import GantryError

TRACEBACK = "GANTRY_TRACEBACK"
"""An environment variable: if it is set, an error is shown with its traceback."""


class GuardedCommand(click.Command):
    """A command whose errors are one line."""

    def invoke(self, ctx: click.Context) -> Any:
        with guarded():
            return super().invoke(ctx)


@contextmanager
def guarded() -> Iterator[None]:
    """Print errors of the block, a line each, and exit."""
    try:
        yield
    except (click.exceptions.Exit, click.Abort, click.ClickException):
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise SystemExit(report(error)) from None


def report(error: BaseException) -> int:
    """Print an error; returns the exit code."""
    leaves = leaves_of(error)
    if any(isinstance(leaf, BrokenPipeError) for leaf in leaves):
        # The reader of the output has ended, as `head -1` does: that is no failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    for line in dict.fromkeys(map(describe, leaves)):
        print(f"error: {line}", file=sys.stderr)
    return 1


def leaves_of(error: BaseException) -> list[BaseException]:
    """The errors of nested exception groups, in order."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for part in error.exceptions for leaf in leaves_of(part)]


def describe(error: BaseException) -> str:
    """An error in one line."""
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
