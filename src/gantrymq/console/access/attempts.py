"""How often somebody may try to log in."""

from collections import OrderedDict
from typing import Final

FAILURES_MAX: Final = 5
"""For one name, and four times as many for one address, which may be many people's."""
ADDRESS_FAILURES_MAX: Final = 20
FORGET_SECONDS: Final = 300.0
KEPT_MAX: Final = 10_000


class LoginAttempts:
    """Counts failures by name and by address; forgets them after five minutes without one."""

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def seconds_to_wait(self, name: str, address: str, now: float) -> float:
        """How long this name, from this address, may not try again; 0 if it may."""
        waits = [0.0]
        for key, most in (
            (("name", name), FAILURES_MAX),
            (("address", address), ADDRESS_FAILURES_MAX),
        ):
            count, last = self._failures.get(key, (0, 0.0))
            if count >= most:
                waits.append(last + FORGET_SECONDS - now)
        return max(waits)

    def failed(self, name: str, address: str, now: float) -> None:
        """Note a wrong password."""
        for key in (("name", name), ("address", address)):
            count, last = self._failures.pop(key, (0, now))
            self._failures[key] = (count + 1 if now - last < FORGET_SECONDS else 1, now)
        while len(self._failures) > KEPT_MAX:
            self._failures.popitem(last=False)

    def succeeded(self, name: str) -> None:
        """Forget the failures of a name."""
        self._failures.pop(("name", name), None)
