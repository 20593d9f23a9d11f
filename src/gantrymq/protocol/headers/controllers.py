"""RocketMQ's controller, which chooses masters; our brokers have raft groups instead."""

from gantrymq.protocol.headers.base import Header


class ElectMasterRequest(Header, frozen=True, kw_only=True):
    """CONTROLLER_ELECT_MASTER."""

    cluster_name: str = ""
    broker_name: str = ""
    broker_id: int = -1
    designate_elect: bool = False
    invoke_time: int = 0


class ElectMasterResponse(Header, frozen=True, kw_only=True):
    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None


class ControllerMetadataResponse(Header, frozen=True, kw_only=True):
    """CONTROLLER_GET_METADATA_INFO."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool = False
    peers: str | None = None


class CleanBrokerDataRequest(Header, frozen=True, kw_only=True):
    """CLEAN_BROKER_DATA."""

    cluster_name: str | None = None
    broker_name: str
    broker_controller_ids_to_clean: str | None = None
    is_clean_living_broker: bool = False
    invoke_time: int = 0
