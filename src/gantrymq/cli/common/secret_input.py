"""Reads passwords and keys from where no list of processes and no history of a shell shows them."""

import sys
from getpass import getpass


def read_secret(what: str) -> str:
    """A secret that is typed twice at a terminal, unseen; else the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    while True:
        secret = getpass(f"{what}: ")
        if secret == getpass("Once more: "):
            return secret
        print("the two differ; type it again", file=sys.stderr)
