"""Puts the requests of `users_script` to a real RocketMQ broker and writes down its answers.

Run as a script; needs what `tests/interop` needs. The recording is committed, so that replaying it
needs no Java.
"""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from users_script import CHANGES, DECISIONS, GROUPS, HOME, SETTINGS, TOPICS, Request
from users_wire import ConnectionFrom, ask
from wire import Frame

from gantrymq.protocol.codes import RequestCode as Code

HERE = Path(__file__).resolve().parent
VERSION = "5.3.3"
RECORDING = HERE / "recordings" / f"users-{VERSION}.json"


def play(broker: str) -> dict[str, list[Any]]:
    """Put everything to a broker that has only its first users; returns its answers."""
    with ExitStack() as stack:
        lines: dict[str, ConnectionFrom] = {}

        def answer_to(request: Request) -> Frame:
            source = request.get("source", HOME)
            if source not in lines:
                lines[source] = stack.enter_context(ConnectionFrom(broker, source))
            return ask(lines[source], request)

        for request in _preparations():
            assert answer_to(request).code == 0
        return {
            "changes": [_change_answer(answer_to(request)) for request in CHANGES],
            "decisions": [_decision_answer(answer_to(request)) for request in DECISIONS],
        }


def _preparations() -> list[Request]:
    topic = {"defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
             "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}  # fmt: skip
    return [
        *(
            {"code": Code.UPDATE_AND_CREATE_TOPIC, "ext": {"topic": name, **topic}}
            for name in TOPICS
        ),
        *(
            {
                "code": Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
                "body": json.dumps({"groupName": name}),
            }
            for name in GROUPS
        ),
    ]


def _change_answer(frame: Frame) -> list[Any]:
    return [frame.code, frame.remark, json.loads(frame.body) if frame.body else None]


def _decision_answer(frame: Frame) -> list[Any]:
    """Code and remark; what an allowed request answers besides is the matter of other dialogues."""
    return [frame.code, frame.remark if frame.code == 16 else None]


def main() -> None:
    """Record."""
    sys.path.insert(0, str(HERE.parent / "interop"))
    import toolchain
    from real import RealCluster

    toolchain.build_java()
    with RealCluster(VERSION, settings=SETTINGS) as cluster:
        answers = play(cluster.broker_addr)
    lines = [
        f"{json.dumps(part)}: [\n" + ",\n".join(json.dumps(each) for each in found) + "\n]"
        for part, found in answers.items()
    ]
    RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
