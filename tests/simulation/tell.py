"""Tells stories as timelines: virtual seconds, who, what. Broken invariants are marked.

    python tests/simulation/tell.py 17          # the story of each kind with this seed
    python tests/simulation/tell.py 17 group    # about a raft group; or `copies`, or `story`

The exit code is 1 when an invariant is broken.
"""

import logging
import sys
from importlib import import_module
from typing import Any

KINDS = {
    "group": "a raft group",
    "copies": "a master and its slaves",
    "story": "brokers without copies",
}


def timeline_of(told: Any) -> Any:
    """The timeline of a story of any kind."""
    return told.timeline if hasattr(told, "timeline") else told.ledger.timeline


def main(arguments: list[str]) -> int:
    seed, kinds = int(arguments[0]), arguments[1:] or list(KINDS)
    logging.getLogger("gantrymq").addHandler(logging.NullHandler())  # no part of the story
    broken = 0
    for kind in kinds:
        timeline = timeline_of(import_module(f"sim_{kind}").run(seed))
        sys.stdout.write(f"seed {seed}, {KINDS[kind]}\n")
        sys.stdout.write("\n".join(timeline.lines) + "\n")
        broken += len(timeline.faults)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
