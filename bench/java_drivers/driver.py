"""Starts one of RocketMQ's benchmark programs, and ends it."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.programs import ProgramFailed
from bench.tools import class_path

POM = Path(__file__).with_name("pom.xml")
PACKAGE = "org.apache.rocketmq.example.benchmark"
HEAP = ("-Xms512m", "-Xmx1g")
SHOWN = 2_000


@contextlib.contextmanager
def driving(program: str, namesrv: str, *arguments: object) -> Iterator[None]:
    """The program works until the block is left; it has no end of its own."""
    command = ["java", *HEAP, "-cp", class_path("java-drivers", POM), f"{PACKAGE}.{program}"]
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(
            [*command, "-n", namesrv, *map(str, arguments)], stdout=said, stderr=subprocess.STDOUT
        )
        try:
            yield
            if child.poll() is not None:
                said.seek(0)
                raise ProgramFailed(f"{program} ended: {said.read()[-SHOWN:]}")
        finally:
            child.kill()
            child.wait()
