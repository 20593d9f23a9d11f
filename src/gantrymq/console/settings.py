"""Where a console listens, which clusters it shows, and where it keeps its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class ClusterAddress:
    """A cluster as the console knows it: the name people see, and its name servers."""

    name: str
    namesrv: str
    key_file: str | None = None
    """The key pair, and TLS, with which the console asks; see `ClientOptions.key_file`."""


@dataclass(frozen=True, kw_only=True)
class ConsoleSettings:
    """Everything that `gantry console` is asked for."""

    clusters: tuple[ClusterAddress, ...]
    data: Path
    """The folder of samples, saved filters, notes and the audit trail."""
    host: str = "127.0.0.1"
    port: int = 8080
    """0 for a free one."""
    users_file: Path | None = None
    """Users with salted hashes of their passwords. Without it nobody logs in, which only a console
    on a loopback address may do."""
    is_read_only: bool = False
    """Nobody may change anything."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host in LOOPBACK
