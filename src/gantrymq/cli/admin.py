"""`gantry admin`: the commands of mqadmin under one roof with the others."""

import click

WORDS_AS_THEY_ARE = {"ignore_unknown_options": True, "help_option_names": []}


@click.command("admin", context_settings=WORDS_AS_THEY_ARE)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def admin(words: tuple[str, ...]) -> None:
    """Run a command of mqadmin: `gantry admin topicList` is `mqadmin topicList`."""
    from gantrymq.cli.mqadmin.main import HELP_WORDS, run

    if not words or (len(words) == 1 and words[0] in HELP_WORDS):
        print("Usage: gantry admin COMMAND [OPTIONS]\n")
    raise SystemExit(run(list(words)))
