"""The text of an access file: RocketMQ 4.9's `plain_acl.yml`, read and written. Pure.

    globalWhiteRemoteAddresses:
      - 10.0.1-100.*
    accounts:
      - accessKey: orders-app
        secretKey: 12345678
        whiteRemoteAddress:
        admin: false
        defaultTopicPerm: DENY
        defaultGroupPerm: SUB
        topicPerms: [orders=PUB|SUB]
        groupPerms: [billing=SUB]

An error names the line, and never quotes it: the line may hold a secret key.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml

from gantrymq.access.accounts import Account, Permission, group_resource, parse_permission
from gantrymq.access.addresses import parse_pattern
from gantrymq.access.signature import SigningKey
from gantrymq.base.errors import ConfigError
from gantrymq.base.hidden import repr_without

KEY_LENGTH_MIN: Final = 7
"""RocketMQ: access key and secret key are longer than six characters."""
ACCOUNTS: Final = "accounts"
WHITE_ADDRESSES: Final = "globalWhiteRemoteAddresses"
DATA_VERSION: Final = "dataVersion"


class AccountEntry(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """One account as the file has it; also the form in which tools get it (PlainAccessConfig)."""

    access_key: str = ""
    secret_key: str = ""
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] | None = None
    group_perms: list[str] | None = None

    def __repr__(self) -> str:
        return f"AccountEntry({self.access_key!r})"


class AclVersion(msgspec.Struct, kw_only=True, rename="camel", frozen=True):
    """Counts changes that tools made to a file."""

    counter: int = 0
    timestamp: int = 0


class AccessFile(msgspec.Struct, kw_only=True):
    """One access file, parsed; `whole` is what is written back, with keys that nobody knows."""

    path: str
    entries: list[AccountEntry] = []
    accounts: list[Account] = []
    white_addresses: list[str] = []
    version: AclVersion = AclVersion()
    whole: dict[str, Any] = {}

    def __repr__(self) -> str:
        return repr_without(self, ("whole",))


def parse_file(path: str, text: str) -> AccessFile:
    """An access file; raises ConfigError with file and line."""
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError:
        raise ConfigError(f"{path}: this is no YAML: it has control characters") from None
    try:
        node = loader.get_single_node()
        data = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{path}{line}: this is no YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError(f"{path}: this is no YAML") from None
    finally:
        loader.dispose()
    if data is None:
        return AccessFile(path=path)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}, line 1: write {WHITE_ADDRESSES}: and {ACCOUNTS}:")
    return _parsed(path, data, _Lines(node))


class _Lines:
    """Where in the file the items of a list stand."""

    def __init__(self, node: Any) -> None:
        self._by_key: dict[str, tuple[int, list[int]]] = {}
        for key, value in node.value:
            below = value.value if isinstance(value, yaml.SequenceNode) else []
            lines = [each.start_mark.line + 1 for each in below]
            self._by_key[str(key.value)] = key.start_mark.line + 1, lines

    def of(self, key: str, at: int | None = None) -> int:
        line, lines = self._by_key.get(key, (1, []))
        return line if at is None else lines[at]


def _parsed(path: str, data: dict[Any, Any], lines: _Lines) -> AccessFile:
    found = AccessFile(path=path, entries=[], accounts=[], white_addresses=[], whole=data)
    for at, text in enumerate(_list(path, data, WHITE_ADDRESSES, lines)):
        try:
            parse_pattern(_text(text))
        except ConfigError as error:
            raise ConfigError(f"{path}, line {lines.of(WHITE_ADDRESSES, at)}: {error}") from None
        found.white_addresses.append(_text(text) or "")
    for at, fields in enumerate(_list(path, data, ACCOUNTS, lines)):
        where = f"{path}, from line {lines.of(ACCOUNTS, at)}"
        try:
            entry = entry_of(fields)
            found.accounts.append(account_of(entry))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        if any(known.access_key == entry.access_key for known in found.entries):
            raise ConfigError(f"{where}: accessKey {entry.access_key} is there twice")
        found.entries.append(entry)
    found.version = version_of(data.get(DATA_VERSION))
    return found


def _list(path: str, data: Mapping[Any, Any], key: str, lines: _Lines) -> list[Any]:
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfigError(f"{path}, line {lines.of(key)}: {key} is a list: begin its lines with -")
    return value


def _text(value: Any) -> str | None:
    """A scalar as text: YAML reads `12345678` as a number, and RocketMQ's own file has that."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ConfigError("a list or a table stands where a text should be")


def entry_of(fields: Any) -> AccountEntry:
    """An account of the file; raises ConfigError."""
    if not isinstance(fields, dict):
        raise ConfigError("an account is a table: begin with accessKey: and secretKey:")
    known = dict(
        zip(AccountEntry.__struct_encode_fields__, AccountEntry.__struct_fields__, strict=True)
    )
    unknown = sorted(str(key) for key in fields if key not in known)
    if unknown:
        raise ConfigError(f"an account has no {unknown[0]}: its keys are {', '.join(known)}")
    values: dict[str, Any] = {}
    for key, value in fields.items():
        if key in ("topicPerms", "groupPerms"):
            if value is not None and not isinstance(value, list):
                raise ConfigError(f"{key} is a list: write - name=PUB|SUB for each")
            values[known[key]] = None if value is None else [_text(each) or "" for each in value]
        elif key == "admin":
            values["admin"] = (_text(value) or "").strip().lower() == "true"
        else:
            values[known[key]] = _text(value)
    values["access_key"] = (values.get("access_key") or "").strip()
    values["secret_key"] = (values.get("secret_key") or "").strip()
    return AccountEntry(**values)


def account_of(entry: AccountEntry) -> Account:
    """The account of an entry, every part of it checked; raises ConfigError."""
    if len(entry.access_key) < KEY_LENGTH_MIN or len(entry.secret_key) < KEY_LENGTH_MIN:
        raise ConfigError(
            f"accessKey={entry.access_key}: accessKey and secretKey are longer than 6 characters"
        )
    resources = {group_resource(n): p for n, p in map(_resource, entry.group_perms or [])}
    resources |= dict(map(_resource, entry.topic_perms or []))
    try:
        return Account(
            entry.access_key,
            SigningKey(entry.secret_key),
            parse_pattern(entry.white_remote_address),
            entry.admin,
            parse_permission(entry.default_topic_perm),
            parse_permission(entry.default_group_perm),
            resources,
        )
    except ConfigError as error:
        raise ConfigError(f"accessKey={entry.access_key}: {error}") from None


def _resource(text: str) -> tuple[str, Permission]:
    name, equals, words = text.partition("=")
    if not equals or not name.strip() or "=" in words:
        raise ConfigError(f"{text!r} is no rule: write name=PUB|SUB")
    return name.strip(), parse_permission(words)


def version_of(value: Any) -> AclVersion:
    """The version that tools keep in the file; the zero version if there is none."""
    first = value[0] if isinstance(value, list) and value else None
    try:
        return msgspec.convert(first or {}, AclVersion, strict=False)
    except msgspec.ValidationError:
        return AclVersion()


def file_text(whole: Mapping[str, Any], version: AclVersion) -> str:
    """The text of a changed file, with its new version."""
    stated = [{"counter": version.counter, "timestamp": version.timestamp}]
    return yaml.safe_dump({**whole, DATA_VERSION: stated}, sort_keys=False, allow_unicode=True)
