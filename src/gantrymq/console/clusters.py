"""The clusters of a console, each with an admin client that is opened when it is first needed."""

from collections.abc import Iterable

from gantrymq.access.credentials import Credentials
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.options import ClientOptions
from gantrymq.console.errors import LoginNeeded, NotThere
from gantrymq.console.settings import ClusterAddress


class Clusters:
    """Cluster names and their admin clients."""

    def __init__(
        self, addresses: Iterable[ClusterAddress], keys: dict[str, Credentials] | None = None
    ) -> None:
        """`keys` has a user's own key pair for each cluster, instead of those of the console."""
        self._addresses = {each.name: each for each in addresses}
        self._keys = keys
        self._open: dict[str, Admin] = {}

    @property
    def names(self) -> list[str]:
        return list(self._addresses)

    def address(self, name: str) -> ClusterAddress:
        """The cluster of a name; NotThere for a name that nobody gave."""
        try:
            return self._addresses[name]
        except KeyError:
            known = ", ".join(self._addresses)
            raise NotThere(f"no cluster {name!r} in this console; it has {known}") from None

    async def admin(self, name: str) -> Admin:
        """The open admin client of a cluster."""
        found = self._open.get(name)
        if found is None:
            address = self.address(name)
            options = ClientOptions(key_file=address.key_file, credentials=self._key(name))
            found = Admin(address.namesrv, client=options)
            await found.start()
            # Two requests at once may both have opened one; the first that is there stays.
            if (earlier := self._open.get(name)) is not None:
                await found.close()
                return earlier
            self._open[name] = found
        return found

    def _key(self, name: str) -> Credentials | None:
        if self._keys is None:
            return None
        if name not in self._keys:
            raise LoginNeeded(f"log in to {name!r} with a key of that cluster")
        return self._keys[name]

    @property
    def keys(self) -> dict[str, Credentials]:
        """The user's own key pairs."""
        return dict(self._keys or {})

    async def close(self) -> None:
        """Close all clients."""
        while self._open:
            _, admin = self._open.popitem()
            await admin.close()
