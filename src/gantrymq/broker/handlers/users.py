"""Users and policies of the broker, as RocketMQ 5.3's tools read and change them.

Answers and the texts of errors are RocketMQ's. An answer has passwords, as RocketMQ's has: tools
copy users by it from one broker to another. Only users who may read the cluster get it.
"""

from gantrymq.access.acl_bodies import acl_info, new_user, policies_of, user_info
from gantrymq.access.denials import PolicyDenied
from gantrymq.access.policies import PolicyType, Resource, UserAcl, username_of
from gantrymq.access.server_access import ServerAccess
from gantrymq.access.user_table import UserTable
from gantrymq.access.users import User, UserType
from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import BadRequest, Refused
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import AclInfo, UserInfo
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection


class UserUnnamed(GantryError):
    code = ResponseCode.INVALID_PARAMETER


class UserHandler:
    """The ten requests about users and policies."""

    def __init__(self, access: ServerAccess | None) -> None:
        self._access = access

    @property
    def _table(self) -> UserTable:
        if self._access is None or self._access.users is None:
            raise Refused(
                "there are no users here: this broker has neither authenticationEnabled=true nor "
                "aclEnable=true, and everybody could make them"
            )
        return self._access.users

    def _by_super(self, connection: Connection, command: Command) -> bool:
        """Whether a super user asks; with access files it is an admin."""
        access = self._access
        if access is None or not access.is_by_users:
            return True
        who = access.guard.signer(connection, command)
        return isinstance(who, User) and who.is_super

    async def create_user(self, connection: Connection, command: Command) -> Command:
        """AUTH_CREATE_USER (3001): add a user."""
        table, name = self._table, _named(c.AUTH_CREATE_USER.request.parse(command.ext).username)
        info = fastjson.load_request(command.body or b"{}", UserInfo)
        if UserType.named(info.user_type) is UserType.SUPER:
            self._check_super(connection, command, "create")
        await table.create_user(new_user(name, info))
        return response(command)

    async def update_user(self, connection: Connection, command: Command) -> Command:
        """AUTH_UPDATE_USER (3002): change the password, the type or the status of a user."""
        table, name = self._table, _named(c.AUTH_UPDATE_USER.request.parse(command.ext).username)
        info = fastjson.load_request(command.body or b"{}", UserInfo)
        if UserType.named(info.user_type) is UserType.SUPER:
            self._check_super(connection, command, "update")
        await table.update_user(name, info, by_super=self._by_super(connection, command))
        return response(command)

    def _check_super(self, connection: Connection, command: Command, verb: str) -> None:
        if not self._by_super(connection, command):
            raise BadRequest(f"The super user can only be {verb} by super user")

    async def delete_user(self, connection: Connection, command: Command) -> Command:
        """AUTH_DELETE_USER (3003): delete a user with its policies."""
        table, name = self._table, c.AUTH_DELETE_USER.request.parse(command.ext).username or ""
        if not name.strip():
            raise PolicyDenied("username can not be blank")
        await table.delete_user(name, by_super=self._by_super(connection, command))
        return response(command)

    async def get_user(self, connection: Connection, command: Command) -> Command:
        """AUTH_GET_USER (3004): a user with its password; no body if there is none."""
        table, name = self._table, _named(c.AUTH_GET_USER.request.parse(command.ext).username)
        user = table.rules.users.get(name)
        return response(command, body=b"" if user is None else fastjson.dumps(user_info(user)))

    async def list_users(self, connection: Connection, command: Command) -> Command:
        """AUTH_LIST_USER (3005): users whose names have a text in them."""
        wanted = (c.AUTH_LIST_USER.request.parse(command.ext).filter or "").strip()
        found = [
            user_info(user)
            for name, user in sorted(self._table.rules.users.items())
            if wanted in name
        ]
        return response(command, body=fastjson.dumps(found) if found else b"")

    async def put_acl(self, connection: Connection, command: Command) -> Command:
        """AUTH_CREATE_ACL (3006) and AUTH_UPDATE_ACL (3007): add or replace policy entries."""
        table, header = self._table, c.AUTH_CREATE_ACL.request.parse(command.ext)
        info = fastjson.load_request(command.body or b"{}", AclInfo)
        if not info.policies:
            raise BadRequest("The body of acl is null")
        name = username_of(info.subject)
        if name is None:
            name = _of_subject(header.subject)
        await table.add_policies(name, policies_of(info.policies))
        return response(command)

    async def delete_acl(self, connection: Connection, command: Command) -> Command:
        """AUTH_DELETE_ACL (3008): delete the entry of a resource, or all policies of a user."""
        table, header = self._table, c.AUTH_DELETE_ACL.request.parse(command.ext)
        kind = PolicyType.named(header.policy_type) or PolicyType.CUSTOM
        resource = Resource.parse(header.resource)
        if header.resource and resource is None:
            raise BadRequest(f"{header.resource!r} is no resource: nothing was deleted")
        await table.delete_policies(_of_subject(header.subject), kind, resource)
        return response(command)

    async def get_acl(self, connection: Connection, command: Command) -> Command:
        """AUTH_GET_ACL (3009): the policies of a user; no body if there are none."""
        rules = self._table.rules
        name = _of_subject(c.AUTH_GET_ACL.request.parse(command.ext).subject)
        if name not in rules.users:
            raise PolicyDenied("The subject is not exist.")
        acl = rules.acls.get(name)
        return response(command, body=b"" if acl is None else fastjson.dumps(acl_info(acl)))

    async def list_acls(self, connection: Connection, command: Command) -> Command:
        """AUTH_LIST_ACL (3010): policies by a text in the subject, and in the resource."""
        header = c.AUTH_LIST_ACL.request.parse(command.ext)
        subject, resource = header.subject_filter or "", header.resource_filter or ""
        found = []
        for _, acl in sorted(self._table.rules.acls.items()):
            if subject.strip() not in acl.subject:
                continue
            kept = acl if resource in acl.subject else _about(acl, resource)
            if kept.policies:
                found.append(acl_info(kept))
        return response(command, body=fastjson.dumps(found) if found else b"")


def _about(acl: UserAcl, text: str) -> UserAcl:
    """The entries whose resource has a text in it."""
    for policy in acl.policies:
        for entry in policy.entries:
            if text not in str(entry.resource):
                acl = acl.without(policy.type, entry.resource)
    return acl


def _named(username: str | None) -> str:
    if not (username or "").strip():
        raise UserUnnamed("The username is blank")
    return username or ""


def _of_subject(subject: str | None) -> str:
    name = username_of(subject)
    if name is None:
        raise BadRequest("the subject is no user: write User:NAME")
    return name
