"""What happened in a story, line by line: when, who, what. A seed repeats it to the byte."""

import asyncio
from collections.abc import Iterable


class Timeline:
    """Lines in the order in which things happened, and the invariants that were broken."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.faults: list[str] = []

    def say(self, who: str, what: str) -> None:
        """Note what somebody did, or what happened to him."""
        now = asyncio.get_running_loop().time()
        self.lines.append(f"{now:11.6f}  {who}: {what}")

    def accuse(self, broken: Iterable[str]) -> None:
        """Note which invariants are broken, if any; see `gantrymq.testing.invariants`."""
        for text in broken:
            if text not in self.faults:
                self.faults.append(text)
                self.say("BROKEN", text)

    def tail(self, count: int = 100) -> str:
        """The last lines, for whoever reads why a story failed."""
        left_out = len(self.lines) - count
        head = [f"... {left_out} lines before"] if left_out > 0 else []
        return "\n".join(head + self.lines[-count:])
