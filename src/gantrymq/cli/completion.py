"""`gantry completion`: the script by which a shell completes commands, options and profiles."""

import sys

import click
from click.shell_completion import get_completion_class

from gantrymq.cli.common.guard import GuardedCommand

PROGRAM = "gantry"
VARIABLE = "_GANTRY_COMPLETE"


@click.command("completion", cls=GuardedCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash: eval "$(gantry completion bash)"      in ~/.bashrc
    zsh:  eval "$(gantry completion zsh)"       in ~/.zshrc
    fish: gantry completion fish | source       in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    sys.stdout.write(kind(ctx.find_root().command, {}, PROGRAM, VARIABLE).source())
