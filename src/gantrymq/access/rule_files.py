"""The access files of a server: found, read, watched and changed.

They are RocketMQ's: `conf/plain_acl.yml` and every `.yml` below `conf/acl`. At the start a missing
or damaged file is an error. Later a damaged one leaves the rules as they were, because the other
choices are a server that lets everybody in, or nobody; the log says what is wrong with it.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any, Final

import msgspec

from gantrymq.access.account_rules import AccessRules
from gantrymq.access.accounts import Account
from gantrymq.access.addresses import parse_pattern
from gantrymq.access.key_sources import HOME_VARIABLE, TOOLS_FILE
from gantrymq.access.plain_acl import (
    ACCOUNTS,
    WHITE_ADDRESSES,
    AccessFile,
    AccountEntry,
    AclVersion,
    account_of,
    file_text,
    parse_file,
)
from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk, parent_of
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.files import read_file, save_text
from gantrymq.base.offload import Offload

log = logging.getLogger(__name__)

WATCH_SECONDS: Final = 0.5
DEFAULT_FILE: Final = "conf/plain_acl.yml"
FOLDER: Final = "acl"
_ENDINGS: Final = (".yml", ".yaml")


class NotChanged(GantryError):
    """An access file was not changed; the text says why."""


def main_file(named: str, home: str) -> str:
    """The main access file: the one that a setting names, else RocketMQ's, below its home."""
    if named:
        return named
    home = home or os.environ.get(HOME_VARIABLE, "")
    if not home:
        raise ConfigError(
            f"aclEnable=true: name the access file with aclFile=PATH, or set {HOME_VARIABLE}, "
            f"below which it is {DEFAULT_FILE}"
        )
    return f"{home.rstrip('/')}/{DEFAULT_FILE}"


class RuleFiles:
    """The rules of one server, as its files have them now."""

    def __init__(self, disk: Disk, offload: Offload, clock: WallClock, path: str) -> None:
        """`path` is the main file; a folder `acl` beside it may hold more. Raises ConfigError."""
        self._disk, self._offload, self._clock = disk, offload, clock
        self.path = path
        self._turn = asyncio.Lock()
        self._texts: dict[str, str] = {}
        self._complaint = ""
        self.on_change: list[Callable[[AccessRules], None]] = []
        texts = self._read()
        if not texts:
            raise ConfigError(
                f"aclEnable=true, but there is no file {path}: write one, or name another file "
                "with aclFile"
            )
        self.files = _parsed(texts)
        self.rules = rules_of(self.files)
        self._texts = texts

    def _paths(self) -> list[str]:
        main = [self.path] if self._disk.exists(self.path) else []
        return [*self._below(f"{parent_of(self.path)}/{FOLDER}"), *main]

    def _below(self, folder: str) -> list[str]:
        found: list[str] = []
        for name in self._disk.list(folder):
            path = f"{folder}/{name}"
            if self._disk.is_dir(path):
                found += self._below(path)
            elif name.endswith(_ENDINGS) and name != TOOLS_FILE and path != self.path:
                found.append(path)
        return found

    def _read(self) -> dict[str, str]:
        texts = {}
        for path in self._paths():
            try:
                texts[path] = read_file(self._disk, path).decode()
            except OSError as error:
                raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
            except UnicodeDecodeError:
                raise ConfigError(f"{path} is no text in UTF-8") from None
        return texts

    async def refresh(self) -> None:
        """Take over what was changed on disk; called twice a second."""
        async with self._turn:
            try:
                texts = await self._offload.run(self._read)
                if texts == self._texts:
                    self._complaint = ""
                    return
                if not texts:
                    raise ConfigError(f"{self.path} is gone")
                files = _parsed(texts)
                rules = rules_of(files)
            except ConfigError as error:
                self._complain(str(error))
                return
            self._take(texts, files, rules)
            log.warning("access rules read again: %d accounts", len(rules.accounts))

    def _complain(self, why: str) -> None:
        if why != self._complaint:
            self._complaint = why
            log.error("ACCESS RULES NOT CHANGED, the old ones stay in force: %s", why)

    def _take(self, texts: dict[str, str], files: list[AccessFile], rules: AccessRules) -> None:
        self._texts, self.files, self.rules, self._complaint = texts, files, rules, ""
        for tell in self.on_change:
            tell(rules)

    # changes by tools

    @property
    def versions(self) -> dict[str, AclVersion]:
        """The version of each file."""
        return {file.path: file.version for file in self.files}

    @property
    def entries(self) -> list[AccountEntry]:
        """All accounts, with their secret keys."""
        return [entry for file in self.files for entry in file.entries]

    @property
    def white_addresses(self) -> list[str]:
        return [text for file in self.files for text in file.white_addresses]

    async def put(self, wanted: AccountEntry) -> None:
        """Add an account, or change the parts of one that are given; raises NotChanged."""
        fields = {k: v for k, v in msgspec.to_builtins(wanted).items() if v not in (None, "")}
        fields["admin"] = wanted.admin
        try:
            account_of(wanted)
        except ConfigError as error:
            raise NotChanged(str(error)) from None

        def change(whole: dict[str, Any]) -> None:
            accounts = whole.setdefault(ACCOUNTS, None) or []
            old = next((a for a in accounts if _key_of(a) == wanted.access_key), None)
            whole[ACCOUNTS] = [a for a in accounts if a is not old] + [{**(old or {}), **fields}]

        await self._change(self._file_of(wanted.access_key) or self.path, change)

    async def delete(self, access_key: str) -> None:
        """Delete an account; raises NotChanged if there is none."""
        path = self._file_of(access_key)
        if path is None:
            raise NotChanged(
                f"The accesskey[{access_key}] corresponding to accessConfig has been deleted "
                "failed: no access file has it"
            )

        def change(whole: dict[str, Any]) -> None:
            whole[ACCOUNTS] = [a for a in whole[ACCOUNTS] if _key_of(a) != access_key]

        await self._change(path, change)

    async def put_white_addresses(self, addresses: list[str], path: str = "") -> None:
        """Replace the global white list of a file; raises NotChanged."""
        path = path or self.path
        if path != self.path and path not in self._texts:
            raise NotChanged(f"{path} is none of the access files: {', '.join(self._texts)}")
        try:
            for text in addresses:
                parse_pattern(text)
        except ConfigError as error:
            raise NotChanged(str(error)) from None

        def change(whole: dict[str, Any]) -> None:
            whole[WHITE_ADDRESSES] = addresses

        await self._change(path, change)

    def _file_of(self, access_key: str) -> str | None:
        for file in self.files:
            if any(entry.access_key == access_key for entry in file.entries):
                return file.path
        return None

    async def _change(self, path: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change one file as it is on disk now, in one step, and put it into force at once."""
        async with self._turn:
            try:
                texts = await self._offload.run(self._read)
                file = parse_file(path, texts.get(path, ""))
                change(file.whole)
                version = AclVersion(
                    counter=file.version.counter + 1, timestamp=self._clock.now_ms()
                )
                texts[path] = file_text(file.whole, version)
                files = _parsed(texts)
                rules = rules_of(files)
                await self._offload.run(save_text, self._disk, path, texts[path])
            except ConfigError as error:
                raise NotChanged(str(error)) from error
            except OSError as error:
                raise NotChanged(f"{path} cannot be written: {error.strerror or error}") from error
            self._take(texts, files, rules)


def _key_of(account: Any) -> str:
    return str(account.get("accessKey", "")).strip() if isinstance(account, dict) else ""


def _parsed(texts: dict[str, str]) -> list[AccessFile]:
    return [parse_file(path, text) for path, text in texts.items()]


def rules_of(files: list[AccessFile]) -> AccessRules:
    """The rules of all files. An access key that is in two files counts in the first."""
    accounts: dict[str, Account] = {}
    for file in files:
        for account in file.accounts:
            if account.access_key in accounts:
                log.warning(
                    "%s: accessKey %s is in another file too; that one counts",
                    file.path,
                    account.access_key,
                )
            accounts.setdefault(account.access_key, account)
    patterns = tuple(parse_pattern(text) for file in files for text in file.white_addresses)
    return AccessRules(accounts, patterns)
