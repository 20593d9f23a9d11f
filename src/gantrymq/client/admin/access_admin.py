"""Administration of access files: accounts and white lists of brokers with `aclEnable`."""

from collections.abc import Sequence
from typing import Any

from gantrymq.client.admin.admin_base import AdminBase
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import AccessConfigBody
from gantrymq.protocol.headers.access import (
    AccessConfigRequest,
    AccessKeyRequest,
    AclVersionResponse,
    WhiteAddressesRequest,
)
from gantrymq.protocol.headers.base import Nothing


class AccessAdmin(AdminBase):
    """Asks and changes the access files of one broker, by its address. The key is an admin's."""

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
