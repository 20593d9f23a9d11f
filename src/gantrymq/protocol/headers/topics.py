"""Topics on a broker, and the routes, cluster and KV tables of a name server."""

from gantrymq.protocol.headers.base import Header


class TopicRequest(Header, frozen=True, kw_only=True):
    topic: str


class CreateTopicRequest(Header, frozen=True, kw_only=True):
    topic: str
    default_topic: str = "TBW102"
    read_queue_nums: int = 8
    write_queue_nums: int = 8
    perm: int = 6
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int | None = 0
    order: bool = False
    attributes: str | None = None
    """Changes to them: `+name=value` sets one, `-name` removes one, commas between."""


class RouteRequest(Header, frozen=True, kw_only=True):
    topic: str = "null"
    """A request without a topic asks, in Java's way, for the topic null."""
    accept_standard_json_only: bool | None = None


class KvRequest(Header, frozen=True, kw_only=True):
    """GET_KV_CONFIG and DELETE_KV_CONFIG."""

    namespace: str
    key: str


class PutKvRequest(Header, frozen=True, kw_only=True):
    namespace: str
    key: str
    value: str


class KvResponse(Header, frozen=True, kw_only=True):
    value: str | None = None


class NamespaceRequest(Header, frozen=True, kw_only=True):
    namespace: str


class ClusterRequest(Header, frozen=True, kw_only=True):
    cluster: str


class BrokerNameRequest(Header, frozen=True, kw_only=True):
    broker_name: str


class WipeResponse(Header, frozen=True, kw_only=True):
    wipe_topic_count: int


class AddPermResponse(Header, frozen=True, kw_only=True):
    add_topic_count: int


class BrokerIdentity(Header, frozen=True, kw_only=True):
    """UNREGISTER_BROKER and QUERY_DATA_VERSION."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


class RegisterBrokerRequest(Header, frozen=True, kw_only=True):
    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str = ""
    broker_id: int
    heartbeat_timeout_millis: int | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: int = 0


class RegisterBrokerResponse(Header, frozen=True, kw_only=True):
    ha_server_addr: str | None = None
    master_addr: str | None = None


class DataVersionResponse(Header, frozen=True, kw_only=True):
    changed: bool


class MemberGroupRequest(Header, frozen=True, kw_only=True):
    cluster_name: str
    broker_name: str


class BrokerHeartbeatRequest(Header, frozen=True, kw_only=True):
    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: int | None = None
    heartbeat_timeout_mills: int | None = None


class DeleteTopicInNamesrvRequest(Header, frozen=True, kw_only=True):
    topic: str
    cluster_name: str | None = None


class BrokerConfigResponse(Header, frozen=True, kw_only=True):
    version: str
