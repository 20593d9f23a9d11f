"""Users and their rights: access files of 4.9, and access control since 5.3."""

from gantrymq.base.hidden import repr_without
from gantrymq.protocol.headers.base import Header


class AccessConfigRequest(Header, frozen=True, kw_only=True):
    """UPDATE_AND_CREATE_ACL_CONFIG."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    """`topic=PUB|SUB`, with commas between."""
    group_perms: str | None = None

    def __repr__(self) -> str:
        return repr_without(self, ("secret_key",))


class AccessKeyRequest(Header, frozen=True, kw_only=True):
    """DELETE_ACL_CONFIG."""

    access_key: str


class WhiteAddressesRequest(Header, frozen=True, kw_only=True):
    """UPDATE_GLOBAL_WHITE_ADDRS_CONFIG."""

    global_white_addrs: str
    acl_file_full_path: str = ""


class AclVersionResponse(Header, frozen=True, kw_only=True):
    """GET_BROKER_CLUSTER_ACL_INFO."""

    version: str
    all_acl_file_version: str | None = None
    broker_name: str
    broker_addr: str
    cluster_name: str


class UserRequest(Header, frozen=True, kw_only=True):
    """AUTH_CREATE_USER, AUTH_UPDATE_USER, AUTH_DELETE_USER and AUTH_GET_USER."""

    username: str | None = None


class UserFilterRequest(Header, frozen=True, kw_only=True):
    """AUTH_LIST_USER."""

    filter: str | None = None


class AclSubjectRequest(Header, frozen=True, kw_only=True):
    """AUTH_CREATE_ACL, AUTH_UPDATE_ACL and AUTH_GET_ACL."""

    subject: str | None = None
    """`User:name`."""


class DeleteAclRequest(Header, frozen=True, kw_only=True):
    """AUTH_DELETE_ACL."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


class AclFilterRequest(Header, frozen=True, kw_only=True):
    """AUTH_LIST_ACL."""

    subject_filter: str | None = None
    resource_filter: str | None = None
