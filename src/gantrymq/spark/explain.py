"""Find the text of a GantryMQ error inside an error of Spark.

An error raised in a worker reaches the user as text, inside a traceback of the worker, inside a
message of Spark. `one_line_errors` makes the worker leave out its own traceback; `explain` finds
the text of the error wherever Spark has put it.
"""

import functools
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.spark.python import WHAT_TO_SET

T = TypeVar("T")

HIDE: Final = "SPARK_HIDE_TRACEBACK"
"""The switch of Spark's that a worker looks at when it reports an error."""

_OURS: Final = re.compile(r"(?:^|: )gantrymq(?:\.\w+)+: (.*)$")
_ENDS: Final = re.compile(
    r"^( SQLSTATE: |=== Streaming Query|(JVM|Driver) stacktrace:|\tat |Traceback \()|^\s*$"
)
_NO_MODULE: Final = "No module named 'gantrymq"
_THEIRS: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception)(?:: .*)?$")
_PRINT_EXC: Final = traceback.print_exc
_STATE: Final = re.compile(r"(?: SQLSTATE: \w{5})+$")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Let GantryMQ's errors leave a worker as one line: they report a condition, not a bug.

    Spark's worker ends after the error it reports, so this hides no other traceback.
    """
    try:
        yield
    except GantryError:
        if _is_worker():
            os.environ[HIDE] = "1"
        raise


def unread_quietly() -> None:
    """Let a worker whose rows Spark no longer reads end without a traceback on the console.

    After `limit` or `show` Spark closes the connection to a worker that still has rows. The worker
    would print the broken pipe, which is no error.
    """
    if _is_worker() and traceback.print_exc is _PRINT_EXC:
        traceback.print_exc = _print_unless_unread


def _print_unless_unread(*args: Any, **named: Any) -> None:
    if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
        _PRINT_EXC(*args, **named)


def explain_errors(kind: type[T]) -> type[T]:
    """Make the public methods of a class that Spark calls pass GantryMQ's errors on as one line."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(kind, name, _plain(method))
    return kind


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*args: Any, **named: Any) -> Any:
        with one_line_errors():
            found = method(*args, **named)
        return _told_rows(found) if isinstance(found, Iterator) else found

    return called


def _told_rows(rows: Iterator[Any]) -> Iterator[Any]:
    """The same for rows, which Spark reads long after the method that returned them."""
    with one_line_errors():
        yield from rows


def _is_worker() -> bool:
    """Whether this process is a worker that Spark started."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and str(spec.name).startswith("pyspark.")


def explain(error: BaseException) -> str:
    """What an error of Spark means: the text of GantryMQ's error in it, else its first line.

    >>> try:
    ...     table.collect()
    ... except PySparkException as error:
    ...     print(explain(error))
    """
    return ours(error) or _not_installed(error) or _first_line(error)


def _not_installed(error: BaseException) -> str | None:
    """What to set if a worker's Python lacks this package; None for any other error."""
    if _NO_MODULE not in str(error):
        return None
    what = WHAT_TO_SET.format(python=sys.executable)
    return f"Spark's workers run a Python that has no gantrymq: {what}"


def ours(error: BaseException) -> str | None:
    """The text of the last GantryMQ error inside an error; None if it contains none."""
    if isinstance(error, GantryError):
        return str(error)
    lines = str(error).splitlines()
    for at in range(len(lines) - 1, -1, -1):
        found = _OURS.search(lines[at])
        if found is not None:
            return "\n".join([_STATE.sub("", found[1]), *_rest(lines[at + 1 :])])
    return None


def _rest(lines: list[str]) -> list[str]:
    """The further lines of a message, up to where Spark's own text goes on."""
    kept = []
    for line in lines:
        if _ENDS.search(line):
            break
        kept.append(_STATE.sub("", line))
    return kept


def _first_line(error: BaseException) -> str:
    """Spark's own first line; of a Python traceback its last line, which names the error."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if len(lines) > 1 and lines[1].startswith(": "):  # the line before it only says where
        return _STATE.sub("", lines[1][2:])
    if any(line.endswith("Traceback (most recent call last):") for line in lines):
        said = [line for line in lines if _THEIRS.match(line)]
        if said:
            return _STATE.sub("", said[-1])
    return _STATE.sub("", lines[0]).strip()
