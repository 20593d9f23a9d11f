"""What is said of a slave's copy is what its master says of that slave."""

from msgspec import UNSET

from gantrymq.client.admin.cluster_members import _copy_state, _Said
from gantrymq.protocol.bodies import HaClientInfo, HaConnectionInfo, HaStatus

MEMBERS = {0: "10.0.0.1:10911", 1: "10.0.0.2:10911", 2: "10.0.0.2:10931"}


def row(address: str, broker_id: int | None, *, in_sync: bool) -> HaConnectionInfo:
    return HaConnectionInfo(
        addr=address,
        slave_ack_offset=0,
        diff=0,
        in_sync=in_sync,
        broker_id=UNSET if broker_id is None else broker_id,
    )


def in_sync(*rows: HaConnectionInfo, members: dict[int, str] = MEMBERS) -> list[bool | None]:
    """What is said of each slave, when the master answers with these rows."""
    head = HaStatus(
        master=True,
        master_commit_log_max_offset=500,
        in_sync_slave_nums=sum(each.in_sync for each in rows),
        ha_connection_info=list(rows),
    )
    info = HaClientInfo(max_offset=400, activated=True)
    own = HaStatus(master=False, master_commit_log_max_offset=400, ha_client_runtime_info=info)
    said = {each: _Said({}, {}, own if each else head) for each in members}
    return [_copy_state(each, members, said)[1] for each in members if each]


def test_of_two_slaves_each_has_its_own_state() -> None:
    """Both are connected and near; the master counts one of them."""
    rows = [row("10.0.0.2:4000", 2, in_sync=True), row("10.0.0.2:4001", 1, in_sync=False)]

    assert [False, True] == in_sync(*rows)


def test_a_java_slave_is_found_by_its_host() -> None:
    """It has not introduced itself, but no other slave is at its host."""
    members = {0: "10.0.0.1:10911", 1: "10.0.0.2:10911", 2: "10.0.0.3:10911"}
    rows = [row("/10.0.0.3:4000", None, in_sync=True), row("10.0.0.2:4001", 1, in_sync=False)]

    assert [False, True] == in_sync(*rows, members=members)


def test_two_nameless_slaves_at_one_host_are_not_guessed() -> None:
    """Nothing tells which connection is whose."""
    rows = [row("10.0.0.2:4000", None, in_sync=True), row("10.0.0.2:4001", None, in_sync=False)]

    assert [None, None] == in_sync(*rows)


def test_one_that_the_master_does_not_see_is_unknown() -> None:
    """It says that it follows; its master has no row of it."""
    assert [None, True] == in_sync(row("10.0.0.2:4000", 2, in_sync=True))
