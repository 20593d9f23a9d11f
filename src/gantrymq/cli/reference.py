"""The settings of brokers and name servers as tables: `python -m gantrymq.cli.reference`.

Keys, defaults and meanings come from the code, so that the reference cannot say anything else.
"""

import ast
import inspect
import os.path
import textwrap
from collections.abc import Collection

import msgspec

from gantrymq.base.config import as_text
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.settings.live_settings import FIXED, LIVE
from gantrymq.nameserver.config import NEXT_START, UNCHANGEABLE, NameServerConfig


def reference() -> str:
    """Both tables, with headings."""
    names = frozenset(NameServerConfig.__struct_encode_fields__)
    broker = table(BrokerConfig(), live=LIVE, fixed=FIXED)
    namesrv = table(NameServerConfig(), live=names - NEXT_START - UNCHANGEABLE, fixed=UNCHANGEABLE)
    return f"### Brokers\n\n{broker}\n### Name servers\n\n{namesrv}"


def table(defaults: msgspec.Struct, *, live: Collection[str], fixed: Collection[str]) -> str:
    """A row a setting: its key, its default, when a call changes it, what it means."""
    kind = type(defaults)
    texts, meanings = as_text(defaults), _meanings(kind)
    lines = ["| key | default | by a call | meaning |", "|---|---|---|---|"]
    for name, key in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        default = texts[key].replace(os.path.expanduser("~"), "~")
        when = "at once" if key in live else "no" if key in fixed else "next start"
        shown = f"`{default}`" if default else ""
        lines.append(f"| `{key}` | {shown} | {when} | {meanings[name]} |")
    return "\n".join(lines) + "\n"


def _meanings(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What stands below each field in the source."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = below.value if isinstance(below, ast.Expr) else None
            said = text.value if isinstance(text, ast.Constant) else ""
            found[field.target.id] = " ".join(str(said).split())
    return found


if __name__ == "__main__":
    print(reference(), end="")
