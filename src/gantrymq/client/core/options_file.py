"""Client options from a TOML file, and the reference page that lists them all.

    [client]
    namesrv = "10.0.0.1:9876;10.0.0.2:9876"
    [producer]
    send_timeout_ms = 5000

A misspelt table or option is an error that names the most similar one.
"""

import ast
import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gantrymq.base.config import unknown_key
from gantrymq.base.errors import ConfigError
from gantrymq.client.core.options import (
    ClientOptions,
    ConsumerOptions,
    Options,
    ProducerOptions,
    PullOptions,
)

TABLES: dict[str, type[Options]] = {
    "client": ClientOptions,
    "producer": ProducerOptions,
    "consumer": ConsumerOptions,
    "pull": PullOptions,
}


class OptionsFile(msgspec.Struct, frozen=True, kw_only=True):
    """All option sets; what the file leaves out has its default."""

    client: ClientOptions = msgspec.field(default_factory=ClientOptions)
    producer: ProducerOptions = msgspec.field(default_factory=ProducerOptions)
    consumer: ConsumerOptions = msgspec.field(default_factory=ConsumerOptions)
    pull: PullOptions = msgspec.field(default_factory=PullOptions)


def load_options(path: str | Path) -> OptionsFile:
    """Read the file; the error names the table and option to fix."""
    try:
        tables = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    chosen: dict[str, Any] = {}
    for name, values in tables.items():
        kind = TABLES.get(name)
        if kind is None:
            raise ConfigError(f"{path}: {unknown_key(f'[{name}]', [f'[{t}]' for t in TABLES])}")
        for key in values:
            if key not in kind.__struct_fields__:
                raise ConfigError(f"{path}, [{name}]: {unknown_key(key, kind.__struct_fields__)}")
        try:
            chosen[name] = msgspec.convert(values, kind)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{path}, [{name}]: {error}") from error
    return OptionsFile(**chosen)


def reference() -> str:
    """The page `docs/client-options.md`."""
    parts = [
        "# Client options\n\nPrinted from the code. Each set is a keyword argument of its client "
        "(`options=`, `client=`), or a\ntable of a TOML file read by "
        "`gantrymq.client.load_options`.\n"
    ]
    for name, kind in TABLES.items():
        about = (kind.__doc__ or "").splitlines()[0]
        rows = "\n".join(_rows(kind))
        parts.append(
            f"\n## `[{name}]` {kind.__name__}\n\n{about}\n\n"
            f"| option | default | meaning |\n|---|---|---|\n{rows}\n"
        )
    return "".join(parts)


def _rows(kind: type[Options]) -> Iterator[str]:
    meanings = _docstrings(kind)
    for field in msgspec.structs.fields(kind):
        default = "" if field.default is msgspec.NODEFAULT else f"`{field.default!r}`"
        meaning = " ".join(meanings.get(field.name, "").split()).replace("|", "\\|")
        yield f"| `{field.name}` | {default} | {meaning} |"


def _docstrings(kind: type[Options]) -> dict[str, str]:
    """The text behind each field, which Python itself does not keep."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            found[field.target.id] = str(text.value.value)
    return found
