"""All checks of a cluster, in the order in which they are made. Pure."""

from collections.abc import Callable, Iterable

from gantrymq.client.admin.doctor import group_checks, server_checks, topic_checks
from gantrymq.client.admin.doctor.findings import DoctorFinding, in_order
from gantrymq.client.admin.doctor.snapshot import ClusterSnapshot

Check = Callable[[ClusterSnapshot], Iterable[DoctorFinding]]

CHECKS: tuple[Check, ...] = (
    server_checks.name_servers,
    server_checks.addresses,
    server_checks.access,
    server_checks.masters,
    server_checks.raft_groups,
    server_checks.slaves,
    server_checks.clocks,
    server_checks.disks,
    topic_checks.queue_counts,
    topic_checks.dead_letter_permissions,
    group_checks.subscriptions,
    group_checks.stuck_queues,
    group_checks.retention,
    group_checks.more_members_than_queues,
    group_checks.unbalanced_queues,
    group_checks.old_clients,
    group_checks.not_asked,
)


def examine(snapshot: ClusterSnapshot) -> list[DoctorFinding]:
    """The findings of all checks, the worst first."""
    return in_order(finding for check in CHECKS for finding in check(snapshot))
