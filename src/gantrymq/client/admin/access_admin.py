"""Administration of access control: access files of 4.9, users and policies of 5.3."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gantrymq.client.admin.admin_base import AdminBase
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import AccessConfigBody, AclInfo, UserInfo
from gantrymq.protocol.headers.access import (
    AccessConfigRequest,
    AccessKeyRequest,
    AclFilterRequest,
    AclSubjectRequest,
    AclVersionResponse,
    DeleteAclRequest,
    UserFilterRequest,
    UserRequest,
    WhiteAddressesRequest,
)
from gantrymq.protocol.headers.base import Nothing


class AccessAdmin(AdminBase):
    """Asks and changes the access control of one broker, by its address.

    Accounts need the key of an admin; users need that of a super user, or Get and Update on the
    cluster.
    """

    async def put_account(
        self,
        address: str,
        access_key: str,
        secret_key: str,
        *,
        admin: bool = False,
        white_remote_address: str | None = None,
        default_topic_perm: str | None = None,
        default_group_perm: str | None = None,
        topic_perms: Sequence[str] | None = None,
        group_perms: Sequence[str] | None = None,
    ) -> None:
        """Add an account, or change what is given of one; a rule is `orders=PUB|SUB`."""
        header = AccessConfigRequest(
            access_key=access_key,
            secret_key=secret_key,
            admin=admin,
            white_remote_address=white_remote_address,
            default_topic_perm=default_topic_perm,
            default_group_perm=default_group_perm,
            topic_perms=None if topic_perms is None else ",".join(topic_perms),
            group_perms=None if group_perms is None else ",".join(group_perms),
        )
        await self.instance.call(address, calls.UPDATE_AND_CREATE_ACL_CONFIG, header)

    async def delete_account(self, address: str, access_key: str) -> None:
        """Delete an account; its key is refused from then on."""
        header = AccessKeyRequest(access_key=access_key)
        await self.instance.call(address, calls.DELETE_ACL_CONFIG, header)

    async def put_white_addresses(
        self, address: str, patterns: Sequence[str], file: str = ""
    ) -> None:
        """Replace the global white list of an access file, of the main one by default."""
        header = WhiteAddressesRequest(
            global_white_addrs=",".join(patterns), acl_file_full_path=file
        )
        await self.instance.call(address, calls.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, header)

    async def access_versions(self, address: str) -> tuple[AclVersionResponse, dict[str, Any]]:
        """Which broker it is, and of each access file `counter` and `timestamp`."""
        header, _ = await self.instance.call(address, calls.GET_BROKER_CLUSTER_ACL_INFO, Nothing())
        versions: dict[str, Any] = fastjson.loads((header.all_acl_file_version or "{}").encode())
        return header, versions

    async def access_config(self, address: str) -> AccessConfigBody:
        """All accounts with their secret keys, and the global white list."""
        call = calls.GET_BROKER_CLUSTER_ACL_CONFIG
        _, answer = await self.instance.call(address, call, Nothing())
        return fastjson.load_as(answer.body, AccessConfigBody)

    # users and policies of RocketMQ 5.3

    async def create_user(self, address: str, user: UserInfo) -> None:
        """Add a user; without a type it is a normal one."""
        header, body = UserRequest(username=user.username), fastjson.dumps(_without_none(user))
        await self.instance.call(address, calls.AUTH_CREATE_USER, header, body)

    async def update_user(self, address: str, user: UserInfo) -> None:
        """Change the password, the type or the status of a user: what is not None."""
        header, body = UserRequest(username=user.username), fastjson.dumps(_without_none(user))
        await self.instance.call(address, calls.AUTH_UPDATE_USER, header, body)

    async def delete_user(self, address: str, username: str) -> None:
        """Delete a user with its policies."""
        header = UserRequest(username=username)
        await self.instance.call(address, calls.AUTH_DELETE_USER, header)

    async def get_user(self, address: str, username: str) -> UserInfo | None:
        """A user with its password; None if there is none of that name."""
        header = UserRequest(username=username)
        _, answer = await self.instance.call(address, calls.AUTH_GET_USER, header)
        return fastjson.load_as(answer.body, UserInfo) if answer.body else None

    async def list_users(self, address: str, containing: str = "") -> list[UserInfo]:
        """Users, with their passwords, whose names have a text in them."""
        header = UserFilterRequest(filter=containing or None)
        _, answer = await self.instance.call(address, calls.AUTH_LIST_USER, header)
        return fastjson.load_as(answer.body or b"[]", list[UserInfo])

    async def create_acl(self, address: str, acl: AclInfo) -> None:
        """Add policy entries of a user; those of the same resource are replaced."""
        header = AclSubjectRequest(subject=acl.subject)
        await self.instance.call(address, calls.AUTH_CREATE_ACL, header, fastjson.dumps(acl))

    async def update_acl(self, address: str, acl: AclInfo) -> None:
        """The same: RocketMQ has two requests for it."""
        header = AclSubjectRequest(subject=acl.subject)
        await self.instance.call(address, calls.AUTH_UPDATE_ACL, header, fastjson.dumps(acl))

    async def delete_acl(
        self,
        address: str,
        subject: str,
        resource: str | None = None,
        policy_type: str | None = None,
    ) -> None:
        """Delete the entry of a resource, of the policy Custom by default, or all policies."""
        header = DeleteAclRequest(subject=subject, resource=resource, policy_type=policy_type)
        await self.instance.call(address, calls.AUTH_DELETE_ACL, header)

    async def get_acl(self, address: str, subject: str) -> AclInfo | None:
        """The policies of a subject like `User:shop`; None if it has none."""
        header = AclSubjectRequest(subject=subject)
        _, answer = await self.instance.call(address, calls.AUTH_GET_ACL, header)
        return fastjson.load_as(answer.body, AclInfo) if answer.body else None

    async def list_acls(self, address: str, subject: str = "", resource: str = "") -> list[AclInfo]:
        """Policies by a text in their subject and a text in the resource of their entries."""
        header = AclFilterRequest(subject_filter=subject or None, resource_filter=resource or None)
        _, answer = await self.instance.call(address, calls.AUTH_LIST_ACL, header)
        return fastjson.load_as(answer.body or b"[]", list[AclInfo])


def _without_none(user: UserInfo) -> dict[str, str]:
    fields: dict[str, str | None] = msgspec.to_builtins(user)
    return {name: value for name, value in fields.items() if value is not None}
