"""What a console answers when it cannot do what it is asked for: an HTTP status and a sentence."""

from http import HTTPStatus

from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerRefused, NoNameServer, NoRoute
from gantrymq.protocol.codes import ResponseCode


class ConsoleError(GantryError):
    """An error with its HTTP status."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR


class BadInput(ConsoleError):
    """The question makes no sense; the text says what would."""

    status = HTTPStatus.BAD_REQUEST


class NotThere(ConsoleError):
    """A cluster, topic, group or message that does not exist."""

    status = HTTPStatus.NOT_FOUND


class LoginNeeded(ConsoleError):
    """Nobody is logged in."""

    status = HTTPStatus.UNAUTHORIZED


class TooManyAttempts(ConsoleError):
    """Too many wrong passwords, or answers without an end; the text says when to try again."""

    status = HTTPStatus.TOO_MANY_REQUESTS


class Forbidden(ConsoleError):
    """Who asks may not do that."""

    status = HTTPStatus.FORBIDDEN


_DENIED = (ResponseCode.NO_PERMISSION,)
_MISSING = (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)


def status_of(error: GantryError) -> HTTPStatus:
    """The HTTP status for an error of the console or of a client."""
    if isinstance(error, ConsoleError):
        return error.status
    if isinstance(error, NoRoute):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, (NoNameServer, *TRANSPORT_ERRORS)):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, BrokerRefused):
        if error.code in _DENIED:
            return HTTPStatus.FORBIDDEN
        return HTTPStatus.NOT_FOUND if error.code in _MISSING else HTTPStatus.CONFLICT
    return HTTPStatus.BAD_REQUEST if isinstance(error, ConfigError) else HTTPStatus.CONFLICT
