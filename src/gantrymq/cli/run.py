"""`gantry run`: run the handlers of an App until a signal."""

import logging
import sys
import traceback
from importlib import import_module

import click

from gantrymq.app.app import App
from gantrymq.base.errors import GantryError
from gantrymq.cli.common.output import fail, namesrv_option
from gantrymq.sync import App as BlockingApp

LOG_FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"


@click.command("run")
@click.argument("target", metavar="MODULE:APP")
@namesrv_option
@click.option("-v", "--verbose", is_flag=True, help="Also log what the client does.")
def run(target: str, namesrv: str | None, verbose: bool) -> None:
    """Run the App called APP in MODULE until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format=LOG_FORM)
    app = find_app(target)
    try:
        app.run_forever(namesrv)
    except GantryError as error:
        fail(error)


def find_app(target: str) -> App | BlockingApp:
    """Import the app of `module:name`; the current folder is searched first."""
    module_name, _, name = target.partition(":")
    if not module_name or module_name.startswith("."):
        raise click.UsageError(f"{target!r} names no module: write MODULE:APP")
    sys.path.insert(0, "")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{module_name}.".startswith(f"{error.name}."):
            fail(GantryError(f"{module_name} cannot be imported: {error}"))
        raise click.UsageError(f"{error}: write MODULE:APP") from error
    except Exception as error:  # a user's module may raise anything
        fail(GantryError(f"{module_name} cannot be imported: {_where(error)}"))
    app = getattr(module, name or "app", None)
    if not isinstance(app, App | BlockingApp):
        raise click.UsageError(f"{module_name} has no App called {name or 'app'!r}")
    return app


def _where(error: Exception) -> str:
    """An error of the user's module, with the line that raised it."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({frame.filename}, line {frame.lineno})"
