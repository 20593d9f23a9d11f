"""The clusters of a console, each with an admin client that is opened when it is first needed."""

from collections.abc import Iterable

from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.options import ClientOptions
from gantrymq.console.errors import NotThere
from gantrymq.console.settings import ClusterAddress


class Clusters:
    """Cluster names and their admin clients."""

    def __init__(self, addresses: Iterable[ClusterAddress]) -> None:
        self._addresses = {each.name: each for each in addresses}
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
            options = ClientOptions(key_file=address.key_file)
            found = Admin(address.namesrv, client=options)
            await found.start()
            self._open[name] = found
        return found

    async def close(self) -> None:
        """Close all clients."""
        while self._open:
            _, admin = self._open.popitem()
            await admin.close()
