"""What the handlers of POP share."""

from typing import NamedTuple

from gantrymq.broker.pop.long_polling import PopLongPolling
from gantrymq.broker.pop.order import OrderTable
from gantrymq.broker.pop.pop_reader import PopReader
from gantrymq.broker.pop.revive_log import ReviveLog
from gantrymq.broker.pop.reviver import Reviver


class PopState(NamedTuple):
    """Which messages are popped, and which requests wait for more."""

    log: ReviveLog
    reviver: Reviver
    order: OrderTable
    reader: PopReader
    pops: PopLongPolling
    """Held POP_MESSAGE requests."""
    notifications: PopLongPolling
    """Held NOTIFICATION requests."""
