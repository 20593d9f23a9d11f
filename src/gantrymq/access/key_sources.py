"""Where a program finds its key pair: in the environment, or in a file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gantrymq.access.credentials import Credentials, credentials_of
from gantrymq.base.errors import ConfigError

FILE_VARIABLE: Final = "GANTRY_CREDENTIALS"
"""Names a file like `tools.yml`; it is stronger than the keys themselves."""
ACCESS_KEY_VARIABLE: Final = "ROCKETMQ_ACCESS_KEY"
SECRET_KEY_VARIABLE: Final = "ROCKETMQ_SECRET_KEY"
HOME_VARIABLE: Final = "ROCKETMQ_HOME"
TOOLS_FILE: Final = "tools.yml"
"""Below `conf` in RocketMQ's home; beside access files, and no access file itself."""
SECURITY_TOKEN_VARIABLE: Final = "ROCKETMQ_SECURITY_TOKEN"


def find_credentials(
    key_file: str | None = None, environment: Mapping[str, str] | None = None
) -> Credentials | None:
    """The key pair of a file, or without one of the environment; None if there is none."""
    if key_file:
        return credentials_of_file(Path(key_file))
    return credentials_of_environment(environment)


def credentials_of_environment(environment: Mapping[str, str] | None = None) -> Credentials | None:
    """The key pair of the environment, or of the file that it names; None without one.

    Half a pair is an error: requests would go out unsigned.
    """
    env = os.environ if environment is None else environment
    if env.get(FILE_VARIABLE):
        return credentials_of_file(Path(env[FILE_VARIABLE]))
    access_key, secret_key = env.get(ACCESS_KEY_VARIABLE), env.get(SECRET_KEY_VARIABLE)
    if not access_key and not secret_key:
        return None
    if not access_key or not secret_key:
        raise ConfigError(f"set both {ACCESS_KEY_VARIABLE} and {SECRET_KEY_VARIABLE}, or neither")
    return Credentials(access_key, secret_key, env.get(SECURITY_TOKEN_VARIABLE) or None)


def credentials_of_file(path: Path) -> Credentials:
    """The key pair of a file like RocketMQ's `tools.yml`: lines `accessKey:` and `secretKey:`."""
    import yaml  # only programs with such a file pay for it

    try:
        fields = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError):
        # The reason that YAML gives may quote the line, and so the secret key.
        raise ConfigError(f"{path} is no YAML with lines accessKey: and secretKey:") from None
    if not isinstance(fields, dict):
        raise ConfigError(f"{path}: write lines accessKey: and secretKey:")
    return credentials_of(fields, str(path))


def key_file_of_tools(environment: Mapping[str, str] | None = None) -> str | None:
    """`tools.yml` below RocketMQ's home, for an operator's tools that find no other key pair."""
    env = os.environ if environment is None else environment
    home = env.get(HOME_VARIABLE)
    if not home or credentials_of_environment(env) is not None:
        return None
    path = Path(home) / "conf" / TOOLS_FILE
    return str(path) if path.is_file() else None
