"""What a raft core refuses. Pure."""


class NotServing(Exception):
    """This member is not a leader that may write."""


class LogConflict(Exception):
    """The promises of raft are broken: the member has to stop, and somebody to look."""
