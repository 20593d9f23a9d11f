"""How a request without the right to it is refused, in the words of either generation. Pure."""

from gantrymq.base.errors import GantryError
from gantrymq.protocol.codes import ResponseCode


class AccessDenied(GantryError):
    """A request without the right to it; `why` is the reason alone."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class AclDenied(AccessDenied):
    """Refused by an access file.

    Code 1 and these words are those of RocketMQ 4.9, whose clients and tools know them.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"org.apache.rocketmq.acl.common.AclException: {why}")
        self.why = why


class PolicyDenied(AccessDenied):
    """Refused by users and policies, with the code and the words of RocketMQ 5.3."""

    code = ResponseCode.NO_PERMISSION


class NotAuthenticated(PolicyDenied):
    """The same, because it is not known who sent the request."""
