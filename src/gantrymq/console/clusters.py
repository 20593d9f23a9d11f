"""The clusters of a console, each with an admin client that is opened when it is first needed."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

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
        self._holders = 0
        self._has_ended = False

    @property
    def names(self) -> list[str]:
        return list(self._addresses)

    def address(self, name: str) -> ClusterAddress:
        """The cluster of a name; NotThere for a name that nobody gave.

        LoginNeeded where users have keys, and this one has none of that cluster.
        """
        if name not in self._addresses:
            known = ", ".join(self._addresses)
            raise NotThere(f"no cluster {name!r} in this console; it has {known}")
        if self._keys is not None and name not in self._keys:
            raise LoginNeeded(f"log in to {name!r} with a key of that cluster")
        return self._addresses[name]

    async def admin(self, name: str) -> Admin:
        """The open admin client of a cluster."""
        found = self._open.get(name)
        if found is None:
            self._check_use()
            address = self.address(name)
            key = None if self._keys is None else self._keys[name]
            options = ClientOptions(key_file=address.key_file, credentials=key)
            found = Admin(address.namesrv, client=options)
            await found.start()
            # Two requests at once may both have opened one; the first that is there stays.
            if (earlier := self._open.get(name)) is not None:
                await found.close()
                return earlier
            self._open[name] = found
            if not self._is_used:
                await self._close_all()
            self._check_use()
        return found

    @property
    def _is_used(self) -> bool:
        return self._holders > 0 or not self._has_ended

    def _check_use(self) -> None:
        if not self._is_used:
            raise LoginNeeded("this login has ended")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep the clients for a job: it goes on with its user's rights when the login ends."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._is_used:
                await self._close_all()

    @property
    def keys(self) -> dict[str, Credentials]:
        """The user's own key pairs."""
        return dict(self._keys or {})

    async def close(self) -> None:
        """Close all clients, now or when the last job that holds them ends."""
        self._has_ended = True
        if not self._is_used:
            await self._close_all()

    async def _close_all(self) -> None:
        while self._open:
            _, admin = self._open.popitem()
            await admin.close()
