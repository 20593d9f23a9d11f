"""The clusters, their servers, and what needs attention."""

from typing import Final

from gantrymq.client.admin.cluster_members import MemberStanding, member_states
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, OfCluster, Question

TABLE = EndpointTable("overview")
FINDINGS_MAX: Final = 200


class NoQuestion(Question, frozen=True, kw_only=True):
    """Nothing to say."""


class ClusterNames(Answer, frozen=True, kw_only=True):
    """The clusters of this console."""

    clusters: list[str]


class ClusterMember(Answer, frozen=True, kw_only=True):
    """A broker: one member of a broker name."""

    cluster: str | None
    broker: str
    id: int
    role: str
    """master, slave, leader or follower"""
    address: str
    trouble: str | None = None
    """Why it does not answer."""
    version: str | None = None
    boot_ms: int | None = None
    in_per_second: float | None = None
    out_per_second: float | None = None
    stored_today: int | None = None
    disk_used_percent: int | None = None
    slaves_in_sync: int | None = None
    in_sync: bool | None = None
    behind_bytes: int | None = None
    term: int | None = None
    """The term of its raft group."""


class ClusterMembers(Answer, frozen=True, kw_only=True):
    """All brokers, and the name servers that were asked."""

    name_servers: list[str]
    members: list[ClusterMember]


class ShownFinding(Answer, frozen=True, kw_only=True):
    """Something that is wrong, and what mends it."""

    severity: str
    check: str
    where: str
    finding: str
    setting: str | None = None
    mend: str | None = None


class Findings(Answer, frozen=True, kw_only=True):
    """What `gantry doctor` finds, the worst first."""

    findings: list[ShownFinding]
    count: int
    """All of them; at most 200 are listed."""


@TABLE.get("/clusters")
async def list_clusters(ask: Ask, wanted: NoQuestion) -> ClusterNames:
    """The names of all clusters that this console shows."""
    return ClusterNames(clusters=ask.parts.clusters.names)


@TABLE.get("/clusters/{cluster}/members")
async def list_members(ask: Ask, wanted: OfCluster) -> ClusterMembers:
    """All brokers of a cluster: roles, copies, rates and disks."""
    admin = await ask.admin(wanted.cluster)
    states = await member_states(admin)
    return ClusterMembers(
        name_servers=admin.name_servers, members=[_member(each) for each in states]
    )


def _member(state: MemberStanding) -> ClusterMember:
    return ClusterMember(
        cluster=state.cluster,
        broker=state.broker,
        id=state.id,
        role=_role(state),
        address=state.address,
        trouble=str(state.trouble) if state.trouble else None,
        version=state.version,
        boot_ms=state.boot_ms,
        in_per_second=state.in_per_second,
        out_per_second=state.out_per_second,
        stored_today=state.stored_today,
        disk_used_percent=state.disk_used_percent,
        slaves_in_sync=state.slaves_in_sync,
        in_sync=state.in_sync,
        behind_bytes=state.behind_bytes,
        term=state.raft.term if state.raft else None,
    )


def _role(state: MemberStanding) -> str:
    """Of a raft group's member what it is there; nobody who does not lead is a slave of anybody."""
    return state.raft.role.lower() if state.raft else state.role


@TABLE.get("/clusters/{cluster}/findings")
async def list_findings(ask: Ask, wanted: OfCluster) -> Findings:
    """What is wrong with a cluster, and what mends it (`gantry doctor`)."""
    found = await ask.parts.tables.findings(await ask.admin(wanted.cluster))
    return Findings(
        findings=[ShownFinding(**each.row()) for each in found[:FINDINGS_MAX]], count=len(found)
    )
