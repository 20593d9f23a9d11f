"""The access files of the broker, as RocketMQ 4.9's tools read and change them."""

from collections.abc import Awaitable

import msgspec

from gantrymq.access.plain_acl import AccountEntry, AclVersion
from gantrymq.access.rule_files import NotChanged, RuleFiles
from gantrymq.access.server_access import ServerAccess
from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import Refused
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import AccessConfigBody
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.headers.access import AclVersionResponse
from gantrymq.remoting.connection import Connection


class AccountNotPut(GantryError):
    code = ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED


class AccountNotDeleted(GantryError):
    code = ResponseCode.DELETE_ACL_CONFIG_FAILED


class WhiteAddressesNotPut(GantryError):
    code = ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED


class AccessHandler:
    """The five requests about access files; all but the versions are for admins."""

    def __init__(self, config: BrokerConfig, access: ServerAccess | None, address: str) -> None:
        self._config, self._access, self._address = config, access, address

    @property
    def _files(self) -> RuleFiles:
        if self._access is None or self._access.files is None:
            raise Refused("access files are off here: this broker has aclEnable=false")
        return self._access.files

    async def put(self, connection: Connection, command: Command) -> Command:
        """UPDATE_AND_CREATE_ACL_CONFIG (50): add an account, or change one."""
        h = c.UPDATE_AND_CREATE_ACL_CONFIG.request.parse(command.ext)
        entry = AccountEntry(
            access_key=h.access_key.strip(),
            secret_key=(h.secret_key or "").strip(),
            white_remote_address=h.white_remote_address,
            admin=h.admin,
            default_topic_perm=h.default_topic_perm,
            default_group_perm=h.default_group_perm,
            topic_perms=_split(h.topic_perms),
            group_perms=_split(h.group_perms),
        )
        await _or(AccountNotPut, self._files.put(entry))
        return response(command)

    async def delete(self, connection: Connection, command: Command) -> Command:
        """DELETE_ACL_CONFIG (51): delete an account."""
        h = c.DELETE_ACL_CONFIG.request.parse(command.ext)
        await _or(AccountNotDeleted, self._files.delete(h.access_key.strip()))
        return response(command)

    async def put_white_addresses(self, connection: Connection, command: Command) -> Command:
        """UPDATE_GLOBAL_WHITE_ADDRS_CONFIG (53): replace the global white list of a file."""
        h = c.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG.request.parse(command.ext)
        addresses = _split(h.global_white_addrs) or []
        work = self._files.put_white_addresses(addresses, h.acl_file_full_path)
        await _or(WhiteAddressesNotPut, work)
        return response(command)

    async def versions(self, connection: Connection, command: Command) -> Command:
        """GET_BROKER_CLUSTER_ACL_INFO (52): how often tools have changed each file."""
        versions = self._files.versions
        header = AclVersionResponse(
            version=fastjson.dumps(versions.get(self._files.path, AclVersion())).decode(),
            all_acl_file_version=fastjson.dumps(versions).decode(),
            broker_name=self._config.broker_name,
            broker_addr=self._address,
            cluster_name=self._config.broker_cluster_name,
        )
        return response(command, ext=header.to_ext())

    async def all(self, connection: Connection, command: Command) -> Command:
        """GET_BROKER_CLUSTER_ACL_CONFIG (54): all accounts, with their secret keys."""
        body = AccessConfigBody(
            global_white_addrs=self._files.white_addresses,
            plain_access_configs=[msgspec.to_builtins(each) for each in self._files.entries],
        )
        return response(command, body=fastjson.dumps(body))


def _split(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [each.strip() for each in text.split(",") if each.strip()]


async def _or(failure: type[GantryError], work: Awaitable[None]) -> None:
    try:
        await work
    except NotChanged as error:
        raise failure(str(error)) from error
