"""Where a console listens, which clusters it shows, and where it keeps its files."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.base.telemetry_settings import TelemetrySettings

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class LoginKind(Enum):
    """Who lets people in."""

    NONE = "none"
    """Nobody is asked; for a loopback address only."""
    USERS = "users"
    """The console's own users, from a file."""
    CLUSTER = "cluster"
    """The access control of the clusters: people log in with their keys, whose rights decide."""


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
    login: LoginKind = LoginKind.NONE
    admins: tuple[str, ...] = ()
    """With `LoginKind.CLUSTER`: the access keys of the first cluster that may change the console's
    own rules, too."""
    tls_certificate: Path | None = None
    """Served over HTTPS with it and its key."""
    tls_key: Path | None = None
    tls_key_password: str = field(default="", repr=False)
    """Of an encrypted key."""
    lake: Path | None = None
    """The folder of archives and reports; by default in `data`."""
    is_read_only: bool = False
    """Nobody may change anything."""
    logs: TelemetrySettings = field(default_factory=TelemetrySettings)
    """Of these only the levels, which change while it runs."""

    def __post_init__(self) -> None:
        if self.login is LoginKind.NONE and not self.is_local:
            raise ConfigError(
                f"a console on {self.host} needs users: make one with `gantry console user add "
                "NAME`, or let people log in with their keys of the cluster: --login cluster"
            )
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ConfigError("give both a certificate and its key, or neither")

    @property
    def lake_path(self) -> Path:
        """The folder of archives and reports."""
        return (self.lake or self.data / "lake").absolute()

    @property
    def users_path(self) -> Path:
        """The file of users."""
        return self.data / "users.json"

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host in LOOPBACK
