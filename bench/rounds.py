"""Figures of several rounds, in which the compared take turns."""

import statistics
from dataclasses import dataclass, field


@dataclass
class Rounds:
    """What one of the compared reached, round by round."""

    rates: list[float] = field(default_factory=list)
    """Messages a second."""
    server_us: list[float] = field(default_factory=list)
    """Microseconds of the server's processor time for a message."""
    client_us: list[float] = field(default_factory=list)
    """The same of the client's."""
    peak_mib: float = 0.0

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    def took(self, count: int, seconds: float) -> None:
        """A round of so many messages."""
        self.rates.append(count / seconds)
