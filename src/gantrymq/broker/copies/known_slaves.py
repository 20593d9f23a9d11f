"""Tells a master which hosts are its slaves: those that name servers have under its name.

A slave of ours introduces itself. A Java slave cannot, so the master asks the name servers while
somebody whom it does not know is connected to the HA port.
"""

from typing import Final

from gantrymq.base import upkeep
from gantrymq.broker.announce import Announcer
from gantrymq.replication.ha.master import HaMaster

LOOK_SECONDS: Final = 1.0


async def watch_slaves(ha: HaMaster, announcer: Announcer) -> None:
    """Ask for as long as the broker runs, but only while it matters."""
    while True:
        await ha.unknown_came.wait()
        ha.unknown_came.clear()
        while ha.has_unknown:
            ha.set_known_hosts(await announcer.slave_hosts())
            await upkeep.pause(LOOK_SECONDS)
