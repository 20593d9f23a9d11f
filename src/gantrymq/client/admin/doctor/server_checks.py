"""Checks of name servers and brokers. Pure."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from gantrymq.base.plurals import counted
from gantrymq.client.admin.doctor.findings import DoctorFinding, Severity
from gantrymq.client.admin.doctor.snapshot import BrokerView, ClusterSnapshot

SKEW_MS_MAX, SKEW_MS_BAD = 2_000, 30_000
"""Brokers tell their time in whole seconds."""
DISK_WARNING, DISK_FULL = 0.75, 0.90
DEV_DISK_WARNING: Final = 0.95
SHOWN_MAX: Final = 3
HA_GAP_DEFAULT: Final = 256 * 1024 * 1024

_RUNTIME = re.compile(r"(\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds")
_LOOPBACK = ("127.", "localhost", "::1")


def some(names: list[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def name_servers(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Name servers that do not answer, or know other brokers or topics than the others."""
    check, answering = "name-servers", [each for each in found.name_servers if not each.trouble]
    for each in found.name_servers:
        if each.trouble:
            text = f"does not answer: {each.trouble}"
            mend = f"start mqnamesrv at {each.address}, or take it out of namesrvAddr"
            yield DoctorFinding(check, Severity.ERROR, each.address, text, "namesrvAddr", mend)
    if len(answering) < 2:
        return
    brokers = {
        (name, number, place)
        for each in answering
        for name, members in each.brokers.items()
        for number, place in members.items()
    }
    topics = frozenset[str]().union(*(each.topics for each in answering))
    for each in answering:
        known = {
            (name, number, at) for name, ids in each.brokers.items() for number, at in ids.items()
        }
        missing = sorted(f"{name}:{number} at {at}" for name, number, at in brokers - known)
        if missing:
            yield DoctorFinding(
                check,
                Severity.ERROR,
                each.address,
                f"does not know {some(missing)}, which other name servers know: clients that ask "
                "it do not find them",
                "namesrvAddr",
                "give every broker all name servers: mqadmin updateBrokerConfig -b BROKER "
                f"-k namesrvAddr -v '{';'.join(all_.address for all_ in found.name_servers)}'",
            )
        elif absent := sorted(topics - each.topics):
            text = f"does not list {counted(len(absent), 'topic')} that others list: {some(absent)}"
            yield DoctorFinding(
                check,
                Severity.WARNING,
                each.address,
                text,
                "registerNameServerPeriod",
                "wait for the next registration of the brokers (30 s), then look at the log of "
                "the brokers for a registration that failed",
            )


def addresses(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Brokers that do not answer at the address that they registered, or registered loopback."""
    check = "address"
    remote = [each.address for each in found.name_servers if not each.address.startswith(_LOOPBACK)]
    for broker in found.brokers:
        where = f"{broker.name}:{broker.broker_id}"
        if broker.refuses:
            continue  # its own check tells
        if broker.trouble:
            yield DoctorFinding(
                check,
                Severity.ERROR,
                where,
                f"registered {broker.address}, which does not answer from here: {broker.trouble}",
                "brokerIP1",
                "start the broker if it is down; if it runs, set brokerIP1 in its file to an "
                "address that clients reach, and start it anew",
            )
        elif remote and broker.address.startswith(_LOOPBACK):
            text = f"registered {broker.address}, which clients on other machines cannot reach"
            mend = "set brokerIP1 in its file to an address of its machine, and start it anew"
            yield DoctorFinding(check, Severity.WARNING, where, text, "brokerIP1", mend)


def access(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Brokers that refuse to tell about themselves; nothing else is known of them."""
    for broker in found.brokers:
        if broker.refuses:
            yield DoctorFinding(
                "access",
                Severity.ERROR,
                f"{broker.name}:{broker.broker_id}",
                f"refuses to tell about itself, so it was not checked: {broker.trouble}",
                "aclEnable",
                "give a key that it knows: ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY, or the "
                "file that GANTRY_CREDENTIALS names",
            )


def clocks(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Brokers whose clock differs from the clock of this machine."""
    for broker in found.brokers:
        skew = skew_ms(broker)
        if skew is None or abs(skew) <= SKEW_MS_MAX + (broker.answered_ms - broker.asked_ms):
            continue
        side = "ahead of" if skew > 0 else "behind"
        span = timedelta(seconds=round(abs(skew) / 1000))
        yield DoctorFinding(
            "clock",
            Severity.ERROR if abs(skew) >= SKEW_MS_BAD else Severity.WARNING,
            f"{broker.name}:{broker.broker_id}",
            f"its clock is {span} {side} the clock of this machine: delays, searches by time and "
            "retention go by the clock of the broker",
            "",
            "timedatectl set-ntp true on the machine whose clock is wrong",
        )


def skew_ms(broker: BrokerView) -> int | None:
    """How far a broker's clock is ahead; None if it does not tell. It tells whole seconds."""
    match = _RUNTIME.search(broker.figures.get("runtime", ""))
    boot = broker.number("bootTimestamp", 0)
    if match is None or not boot:
        return None
    days, hours, minutes, seconds = map(int, match.groups())
    runs = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    theirs = int(boot) + runs * 1000 + 500
    return theirs - (broker.asked_ms + broker.answered_ms) // 2


def disks(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Disks of brokers that are nearly full."""
    for broker in found.brokers:
        ratio = broker.number("commitLogDiskRatio", 0)
        where, used = f"{broker.name}:{broker.broker_id}", f"{ratio:.0%}"
        if broker.config.get("storeProfile") == "dev":
            if ratio >= DEV_DISK_WARNING:
                text = f"its disk is {used} full: sends are refused when the next file does not fit"
                yield DoctorFinding(
                    "disk", Severity.WARNING, where, text, "", "make room on the disk"
                )
            continue
        full = _ratio(broker, "diskSpaceWarningLevelRatio", DISK_FULL)
        warning = _ratio(broker, "diskMaxUsedSpaceRatio", DISK_WARNING)
        mend = f"mqadmin updateBrokerConfig -b {broker.address} -k fileReservedTime -v HOURS"
        if ratio >= full:
            text = f"its disk is {used} full: above {full:.0%} sends are refused"
            mend += ", or make room on the disk"
            yield DoctorFinding(
                "disk", Severity.ERROR, where, text, "diskSpaceWarningLevelRatio", mend
            )
        elif ratio >= warning:
            text = f"its disk is {used} full: from {warning:.0%} on old files go at any hour"
            yield DoctorFinding(
                "disk", Severity.WARNING, where, text, "diskMaxUsedSpaceRatio", mend
            )


def _ratio(broker: BrokerView, key: str, default: float) -> float:
    """RocketMQ writes these as a percentage, and as a share in some versions."""
    value = broker.number(key, default)
    return value / 100 if value > 1 else value


def masters(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Brokers without a master: nothing can be sent to them."""
    for name in found.names:
        members = found.members_of(name)
        if _is_raft(members):
            continue  # its own check tells
        if not any(each.is_master and (each.answers or each.refuses) for each in members):
            slave = next((each.address for each in members if each.answers), "")
            mend = f"start the master of {name}"
            if slave:
                mend += f"; or make the slave at {slave} the master (docs/guides/slaves.md)"
            text = "has no master: nothing can be sent to it"
            yield DoctorFinding("master", Severity.ERROR, name, text, "brokerRole", mend)


def slaves(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Slaves that are missing, not in sync or far behind."""
    for name in found.names:
        members = found.members_of(name)
        master = next((each for each in members if each.is_master and each.answers), None)
        if master is None or master.copies is None or _is_raft(members):
            continue
        registered = [each for each in members if not each.is_master]
        waits = master.config.get("brokerRole") == "SYNC_MASTER"
        if waits and not master.copies.in_sync_slave_nums:
            yield DoctorFinding(
                "slave",
                Severity.ERROR,
                name,
                "is a SYNC_MASTER without a slave in sync: sends are answered with "
                "SLAVE_NOT_AVAILABLE, and the next lost machine loses messages",
                "brokerRole",
                f"start a slave (brokerName={name}, brokerId=1, brokerRole=SLAVE), or look into "
                "the log of the slave for: the copy of",
            )
        elif registered and master.copies.in_sync_slave_nums < len(registered):
            missing = len(registered) - master.copies.in_sync_slave_nums
            yield DoctorFinding(
                "slave",
                Severity.WARNING,
                name,
                f"{missing} of {counted(len(registered), 'slave')} "
                f"{'is' if missing == 1 else 'are'} not in sync",
                "haMaxGapNotInSync",
                f"mqadmin haStatus -b {master.address}, then look into the log of the slave",
            )
        gap_max = master.number("haMaxGapNotInSync", HA_GAP_DEFAULT)
        for row in master.copies.ha_connection_info:
            if row.diff > gap_max:
                text = f"the slave at {row.addr} is {row.diff:,} bytes behind"
                mend = "a faster disk or network for the slave, or fewer sends"
                yield DoctorFinding(
                    "slave", Severity.WARNING, name, text, "haMaxGapNotInSync", mend
                )


def _is_raft(members: list[BrokerView]) -> bool:
    return any(member.config.get("enableDLegerCommitLog") == "true" for member in members)


def raft_groups(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Raft groups without a majority or a leader, and members in trouble."""
    for name in found.names:
        members = found.members_of(name)
        if not _is_raft(members):
            continue
        peers = max(
            (each.config.get("dLegerPeers", "").count(";") + 1 for each in members if each.answers),
            default=len(members),
        )
        up = [member for member in members if member.answers]
        statuses = [member.raft for member in up if member.raft is not None]
        if len(up) * 2 <= peers:
            yield DoctorFinding(
                "raft",
                Severity.ERROR,
                name,
                f"{len(up)} of {counted(peers, 'member')} {'is' if len(up) == 1 else 'are'} up: "
                "without a majority nobody leads, and nothing can be sent",
                "dLegerPeers",
                "start the members that are down; gantry raft status shows them",
            )
        elif statuses and not any(status.serves for status in statuses):
            text = "has a majority, and no member serves as its leader"
            mend = "wait for the election (some seconds), then look at gantry raft status"
            yield DoctorFinding("raft", Severity.ERROR, name, text, "dLegerPeers", mend)
        elif len(up) < peers:
            down = peers - len(up)
            text = f"{down} of {counted(peers, 'member')} {'is' if down == 1 else 'are'} down"
            mend = "start the member again; gantry raft status shows which"
            yield DoctorFinding("raft", Severity.WARNING, name, text, "dLegerPeers", mend)
        for status in statuses:
            if status.trouble:
                yield DoctorFinding("raft", Severity.ERROR, f"{name} {status.me}", status.trouble)
