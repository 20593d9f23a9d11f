"""One change at several addresses: what was done is said when a part fails."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import ClientError

T = TypeVar("T")


class PartlyDone(ClientError):
    """A change was made at some addresses, and at others not."""

    def __init__(self, what: str, done: list[str], failed: dict[str, GantryError]) -> None:
        self.done, self.failed = done, failed
        reasons = "; ".join(f"{address}: {error}" for address, error in failed.items())
        made = f"done on {', '.join(done)}" if done else "done nowhere"
        super().__init__(f"{what}: {made}; failed on {reasons}. It can be repeated as a whole")


async def at_each(
    what: str, addresses: Iterable[str], work: Callable[[str], Awaitable[T]]
) -> dict[str, T]:
    """The result of each address, in order.

    An address that fails does not keep the others from being changed. Raises the error itself if
    there is one address only, else PartlyDone.
    """
    addresses = list(addresses)
    done: dict[str, T] = {}
    failed: dict[str, GantryError] = {}
    for address in addresses:
        try:
            done[address] = await work(address)
        except GantryError as error:
            failed[address] = error
    if failed and len(addresses) == 1:
        raise failed[addresses[0]]
    if failed:
        raise PartlyDone(what, list(done), failed)
    return done
