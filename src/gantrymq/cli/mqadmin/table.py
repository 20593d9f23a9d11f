"""All commands of `mqadmin`, in the order in which they are listed."""

from gantrymq.cli.mqadmin.command import AdminCommand
from gantrymq.cli.mqadmin.commands import (
    access,
    brokers,
    clusters,
    consumers,
    copies,
    exports,
    groups,
    messages,
    monitoring,
    name_servers,
    offsets,
    progress,
    reading,
    refused,
    sending,
    topics,
    users,
)

COMMANDS: tuple[AdminCommand, ...] = (
    *topics.COMMANDS,
    *groups.COMMANDS,
    *consumers.COMMANDS,
    *progress.COMMANDS,
    *offsets.COMMANDS,
    *messages.COMMANDS,
    *reading.COMMANDS,
    *sending.COMMANDS,
    *clusters.COMMANDS,
    *brokers.COMMANDS,
    *copies.COMMANDS,
    *name_servers.COMMANDS,
    *access.COMMANDS,
    *users.COMMANDS,
    *exports.COMMANDS,
    *monitoring.COMMANDS,
    *refused.COMMANDS,
)
