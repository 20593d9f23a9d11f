"""The number of this process, without asking the system for each message."""

import os


class OwnProcess:
    """What is known of this process; a forked child has another number from its first line on."""

    __slots__ = ("pid",)

    def __init__(self) -> None:
        self.pid = os.getpid()

    def forked(self) -> None:
        """Ask anew, in a child."""
        self.pid = os.getpid()


OWN_PROCESS = OwnProcess()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=OWN_PROCESS.forked)
