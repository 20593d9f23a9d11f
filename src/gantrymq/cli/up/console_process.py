"""The console of `gantry up`: whether there is one, and the process that serves it."""

import socket
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gantrymq.base.errors import ConfigError

NEEDED: Final = ("starlette", "uvicorn", "jinja2")
"""What the extra `console` brings."""
LOOPBACK: Final = "127.0.0.1"
NAME: Final = "local"
"""How the console calls the cluster."""


@dataclass(frozen=True, kw_only=True)
class ConsolePlan:
    """How to run the console of a deployment."""

    host: str
    port: int
    """0 for a free one."""
    folder: Path
    key_file: Path | None = None
    """With it the console asks for keys, and is served with the certificate beside it."""
    admin: str = ""
    """The access key that is the console's admin then."""

    def arguments(self, namesrv: str) -> list[str]:
        """The words after `gantry console`."""
        words = ["--namesrv", f"{NAME}={namesrv}", "--host", self.host, "--port", str(self.port)]
        words += ["--data", str(self.folder)]
        if self.key_file is not None:
            secure = self.key_file.parent
            words += ["--login", "cluster", "--admin", self.admin, "--key-file", str(self.key_file)]
            words += ["--tls-cert", f"{secure}/server.pem", "--tls-key", f"{secure}/server.key"]
        return words


def plan_console(
    root: Path, host: str, port: int, *, is_chosen: bool, key_file: Path | None, admin: str
) -> ConsolePlan | None:
    """The plan; None, and a line that says why, if the console is not installed.

    A port that nobody chose and that is taken is replaced by a free one. Without access control the
    console is for this machine only, whatever the address of the servers is.
    """
    if any(find_spec(name) is None for name in NEEDED):
        print("no console: pip install 'gantrymq[console]' adds it", file=sys.stderr, flush=True)
        return None
    where = host if key_file is not None else LOOPBACK
    if port and not _is_free(where, port):
        if is_chosen:
            raise ConfigError(f"--console-port {port} is taken; choose another one, or 0")
        port = 0
    return ConsolePlan(
        host=where, port=port, folder=root / "console", key_file=key_file, admin=admin
    )


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
