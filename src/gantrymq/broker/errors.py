"""Errors that a broker answers, each with the response code that clients know."""

from gantrymq.base.errors import GantryError
from gantrymq.protocol.codes import ResponseCode


class TopicMissing(GantryError):
    code = ResponseCode.TOPIC_NOT_EXIST


class GroupMissing(GantryError):
    code = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


class NotPermitted(GantryError):
    code = ResponseCode.NO_PERMISSION


class IllegalMessage(GantryError):
    code = ResponseCode.MESSAGE_ILLEGAL


class Busy(GantryError):
    code = ResponseCode.SYSTEM_BUSY


class SubscriptionMissing(GantryError):
    code = ResponseCode.SUBSCRIPTION_NOT_EXIST


class SubscriptionOld(GantryError):
    code = ResponseCode.SUBSCRIPTION_NOT_LATEST


class FilterMissing(GantryError):
    code = ResponseCode.FILTER_DATA_NOT_EXIST


class NothingFound(GantryError):
    code = ResponseCode.QUERY_NOT_FOUND


class NotOnline(GantryError):
    code = ResponseCode.CONSUMER_NOT_ONLINE


class BadRequest(GantryError):
    """Code 1, as 4.9 answers a wrong parameter."""


class LogDiffers(GantryError):
    """A slave's log does not continue in its master's."""

    code = ResponseCode.LOG_DIFFERS


class Refused(GantryError):
    """A request about something that this broker has not; see `protocol/refusals.py`."""

    code = ResponseCode.REQUEST_CODE_NOT_SUPPORTED


class InvalidParameter(GantryError):
    code = ResponseCode.INVALID_PARAMETER


class NoSuchDelivery(GantryError):
    """This delivery of a popped message is over, or never was."""

    code = ResponseCode.NO_MESSAGE


class TooLate(GantryError):
    code = ResponseCode.POLLING_TIMEOUT


class TooManyPopped(GantryError):
    code = ResponseCode.POLLING_FULL
