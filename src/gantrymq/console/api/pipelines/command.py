"""A command of `gantry pipeline` as a process of its own: Spark never runs in the console."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from gantrymq.access.key_sources import (
    ACCESS_KEY_VARIABLE,
    FILE_VARIABLE,
    SECRET_KEY_VARIABLE,
    SECURITY_TOKEN_VARIABLE,
)
from gantrymq.base.errors import GantryError
from gantrymq.console.api.ask import Ask
from gantrymq.console.errors import BadInput, ConsoleError
from gantrymq.console.jobs import ConsoleJob

PROGRESS_VARIABLE: Final = "GANTRY_PROGRESS"
STOP_SECONDS_MAX: Final = 30.0
"""A pipeline that is asked to stop ends what it is at; after that it is killed."""
LOOK_SECONDS_MAX: Final = 60.0
"""For a look at what there is."""
LINE_BYTES_MAX: Final = 1024 * 1024
NO_SPARK: Final = "the pipelines need Spark: pip install 'gantrymq[spark]', and Java 17"
_CODE: Final = (
    "from gantrymq.cli.pipeline.group import pipeline; pipeline(prog_name='gantry pipeline')"
)


def has_spark() -> bool:
    """Whether Spark is installed beside the console."""
    return find_spec("pyspark") is not None


def check_spark() -> None:
    """BadInput without Spark."""
    if not has_spark():
        raise BadInput(NO_SPARK)


async def ask_pipeline(ask: Ask, cluster: str, *words: str) -> Any:
    """What a short command prints as JSON."""
    process = await _start(ask, cluster, [*words, "-o", "json"])
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            out, err = await process.communicate()
    except TimeoutError:
        raise ConsoleError(f"`gantry pipeline {words[0]}` takes too long") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode and not out:
        raise ConsoleError(_last_line(err))
    return msgspec.json.decode(out or b"[]")


async def run_pipeline(job: ConsoleJob, ask: Ask, cluster: str, words: Sequence[str]) -> str:
    """Run a command as a job, up to its end; returns what it printed last.

    A job that is stopped interrupts the command as Ctrl-C would, and waits for it.
    """
    process = await _start(ask, cluster, words)
    assert process.stdout is not None
    assert process.stderr is not None
    reading = asyncio.create_task(process.stdout.read())
    try:
        async for line in process.stderr:
            _note(job, line.decode("utf-8", "replace").rstrip())
        await process.wait()
        said = (await reading).decode("utf-8", "replace").strip()
    except asyncio.CancelledError:
        await _stop(process)
        raise
    finally:
        reading.cancel()
    if process.returncode:
        raise GantryError(job.lines[-1] if job.lines else f"it ended with {process.returncode}")
    return shown_row(said.splitlines()[-1]) if said else ""


def shown_row(line: str) -> str:
    """A row of JSON for people; other lines as they are."""
    try:
        row = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line
    if not isinstance(row, dict):
        return line
    return ", ".join(f"{name}: {value}" for name, value in row.items() if value is not None)


async def _start(ask: Ask, cluster: str, words: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _CODE,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LINE_BYTES_MAX,
        env=_environment(ask, cluster),
        start_new_session=True,  # Ctrl-C reaches the console only, which stops its jobs in order
    )


def _environment(ask: Ask, cluster: str) -> Mapping[str, str]:
    """Keys go through the environment, where other users of the machine do not see them."""
    address = ask.parts.clusters.address(cluster)
    env = {key: value for key, value in os.environ.items() if not key.startswith("GANTRY_SUPER")}
    env |= {"NAMESRV_ADDR": address.namesrv, PROGRESS_VARIABLE: "json"}
    own = ask.clusters.keys.get(cluster)
    if own is not None:
        # The user's own rights decide. The console's file has the authority to trust, if any.
        for name in (FILE_VARIABLE, SECURITY_TOKEN_VARIABLE):
            env.pop(name, None)
        env |= {ACCESS_KEY_VARIABLE: own.access_key, SECRET_KEY_VARIABLE: own.secret_key}
        if address.key_file:
            env |= {"ROCKETMQ_TLS_CONFIG": address.key_file, "ROCKETMQ_TLS_ENABLE": "true"}
    elif address.key_file:
        env[FILE_VARIABLE] = address.key_file
    return env


def _note(job: ConsoleJob, line: str) -> None:
    """Take a line of the command: its progress as JSON, or an error as text."""
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict) or "progress" not in found:
        if line:
            job.say(line)
        return
    if found["progress"] == "note":
        job.say(str(found.get("text", "")))
        return
    if found.get("done") is not None:
        job.done, job.total = int(found["done"]), found.get("total")


async def _stop(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("error: ") if lines else "the command failed without a word"
