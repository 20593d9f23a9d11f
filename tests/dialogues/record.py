"""Plays every dialogue against the real servers and writes down what they answer.

Run as a script; needs what `tests/interop` needs. The recordings are committed, so that replaying
them needs no Java.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

from player import Step, play_all

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
AREAS: dict[str, list[Step]] = {}
for _path in sorted(HERE.glob("script_*.py")):
    AREAS |= import_module(_path.stem).AREAS


def main(names: list[str]) -> None:
    """Record the named areas, or all of them."""
    sys.path.insert(0, str(HERE.parent / "interop"))
    import toolchain
    from real import RealCluster

    toolchain.build_java()
    areas = {name: AREAS[name] for name in names or AREAS}
    answers: dict[str, dict[str, list[object]]] = {name: {} for name in areas}
    for version in toolchain.JAVA_SERVERS:
        with RealCluster(version) as cluster:
            for name, steps in areas.items():
                sys.stderr.write(f"{version} {name}\n")
                played = play_all(steps, cluster.namesrv, cluster.broker_addr)
                answers[name][version] = list(played)
    RECORDINGS.mkdir(exist_ok=True)
    for name, steps in areas.items():
        recorded = [
            {**step, "answers": {version: found[at] for version, found in answers[name].items()}}
            for at, step in enumerate(steps)
        ]
        text = json.dumps(recorded, indent=1, ensure_ascii=False)
        (RECORDINGS / f"{name}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
