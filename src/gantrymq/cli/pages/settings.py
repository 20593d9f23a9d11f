"""The page `docs/broker-settings.md`: `python -m gantrymq.cli.pages.settings` prints it.

Keys, defaults and effects come from the classes that servers read, so that the page cannot say
anything else. A heading `# --- Name ---` in such a class begins a group of keys.
"""

import inspect
import os.path
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from gantrymq.base.config import as_text
from gantrymq.broker.settings import rocketmq_keys
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.settings.live_settings import FIXED, LIVE
from gantrymq.cli.pages.field_docs import field_docs
from gantrymq.nameserver import config as nameserver
from gantrymq.nameserver.config import NEXT_START, UNCHANGEABLE, NameServerConfig
from gantrymq.remoting.limits import CLOSING, LIMITS, BrokerLimits, NameServerLimits

PREFACE = """\
# Settings of brokers and name servers

Printed by `python -m gantrymq.cli.pages.settings`. [Operating](operating.md#settings) says where
settings are written and how they are changed.

*In force* says when a change by `updateBrokerConfig` or `updateNamesrvConfig` takes effect:

- *at once*: when the answer comes;
- *at start*: at the next start of the server;
- *fixed*: never, because such a change is refused. Write it to the file or on the command line, and
  start the server anew.

*RocketMQ* compares with RocketMQ 5: *same* key and default, the same key with another default, or a
key that is *ours*, with what RocketMQ has instead.
"""
_HEADING = re.compile(r"^    # --- (.+) ---$")
_FIELD = re.compile(r"^    (\w+): ")


@dataclass(frozen=True, slots=True)
class SettingsClass:
    """The settings of one kind of server, and what a reader has to know of each key."""

    title: str
    defaults: msgspec.Struct
    live: Collection[str]
    fixed: Collection[str]
    ours: Mapping[str, str]
    other_defaults: Mapping[str, str]

    def page(self) -> str:
        """A heading and a table for each group."""
        effects = {
            name: f"{text} {_refusal_of(name, type(self.defaults))}".strip()
            for name, text in field_docs(type(self.defaults)).items()
        }
        parts = []
        for group, names in _groups(type(self.defaults)).items():
            heading = f"### {group}\n\n" if group else ""
            rows = "".join(self._row(name, effects[name]) for name in names)
            parts.append(
                f"{heading}| key | default | effect | in force | RocketMQ |\n"
                f"|---|---|---|---|---|\n{rows}"
            )
        return f"## {self.title}\n\n" + "\n".join(parts)

    def _row(self, name: str, effect: str) -> str:
        kind = type(self.defaults)
        key = kind.__struct_encode_fields__[kind.__struct_fields__.index(name)]
        default = self.default(key)
        shown = f"`{default}`" if default else "empty"
        when = "at once" if key in self.live else "fixed" if key in self.fixed else "at start"
        return f"| `{key}` | {shown} | {effect} | {when} | {self.in_rocketmq(key)} |\n"

    def default(self, key: str) -> str:
        """The default of a key, as users write it."""
        return as_text(self.defaults)[key].replace(os.path.expanduser("~"), "~")

    def in_rocketmq(self, key: str) -> str:
        """How the key compares with RocketMQ's."""
        if key in self.ours:
            return f"ours; there: {self.ours[key]}"
        if key in self.other_defaults:
            return f"same key; default {self.other_defaults[key]}"
        return "same"


BROKER = SettingsClass(
    "Brokers", BrokerConfig(), LIVE, FIXED, rocketmq_keys.OURS, rocketmq_keys.OTHER_DEFAULTS
)
NAME_SERVER = SettingsClass(
    "Name servers",
    NameServerConfig(),
    frozenset(NameServerConfig.__struct_encode_fields__) - NEXT_START - UNCHANGEABLE,
    UNCHANGEABLE,
    nameserver.OURS,
    nameserver.OTHER_DEFAULTS,
)


def reference() -> str:
    """The whole page."""
    return "\n".join((PREFACE, BROKER.page(), NAME_SERVER.page()))


def _groups(kind: type[msgspec.Struct]) -> dict[str, list[str]]:
    """The fields below each heading of the class; what has no heading is in the group ''."""
    found: dict[str, list[str]] = {}
    for each in kind.__mro__:
        if not each.__module__.startswith("gantrymq."):
            continue
        heading = ""
        for line in inspect.getsource(each).splitlines():
            if match := _HEADING.match(line):
                heading = match[1]
            elif (match := _FIELD.match(line)) and match[1] in kind.__struct_fields__:
                found.setdefault(heading, []).append(match[1])
    return found


def _refusal_of(field: str, kind: type[msgspec.Struct]) -> str:
    """How a limit refuses; empty for a setting that is none, or that tells it itself."""
    key = kind.__struct_encode_fields__[kind.__struct_fields__.index(field)]
    own = BrokerLimits.__struct_fields__ + NameServerLimits.__struct_fields__
    if field not in own or key not in LIMITS:
        return ""
    code = LIMITS[key]
    if code is None:
        return "Then the connection is closed."
    closed = " and the connection is closed" if key in CLOSING else ""
    return f"More is refused with {code.name}{closed}."


if __name__ == "__main__":
    print(reference(), end="")
