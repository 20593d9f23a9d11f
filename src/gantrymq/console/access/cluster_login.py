"""Whether a key pair is one of a cluster's, by asking a broker of it."""

from typing import Final

from gantrymq.access.credentials import Credentials
from gantrymq.base.errors import GantryError
from gantrymq.base.tokens import secret_text
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.console.clusters import Clusters
from gantrymq.console.errors import Forbidden, LoginNeeded, NotThere
from gantrymq.console.settings import ClusterAddress

NOT_AUTHENTICATED: Final = (
    "no acl config for",
    "check signature failed",
    "no accesskey is configured",
    "username cannot be null",
    "is not found",
    "is disabled",
)
"""What brokers of 4.9, of 5.3 and ours say to a key pair that they do not know, in small letters.
Other refusals tell that the pair is right, and may not do what was asked."""


async def log_in(address: ClusterAddress, pair: Credentials) -> None:
    """LoginNeeded if the cluster does not know the key pair.

    A cluster that takes any pair has no access control, so that nobody can log in with it.
    """
    if not await _is_known(address, pair):
        raise LoginNeeded("access key or secret key is wrong")
    if await _is_known(address, Credentials(pair.access_key, secret_text())):
        raise Forbidden(
            f"the cluster {address.name} takes any key: its access control is off, or the address "
            "of this console is on its white list. Give the console users of its own: "
            "`gantry console user add NAME`"
        )


async def _is_known(address: ClusterAddress, pair: Credentials) -> bool:
    clusters = Clusters([address], {address.name: pair})
    try:
        admin = await clusters.admin(address.name)
        members = (await admin.members()).values()
        masters = [found[min(found)] for found in members if found]
        if not masters:
            raise NotThere(f"the cluster {address.name} has no broker that could check the key")
        await admin.broker_runtime(masters[0])
        return True
    except BrokerRefused as error:
        return _tells_of_key(error)
    finally:
        await clusters.close()


def _tells_of_key(error: GantryError) -> bool:
    """Whether a refusal says that the pair is right."""
    text = str(error).lower()
    return not any(words in text for words in NOT_AUTHENTICATED)
