"""What each kind of finding means for those who use the store, and what a repair does about it."""

from typing import Final, NamedTuple


class Advice(NamedTuple):
    """About one kind of finding."""

    means: str
    repair: str


_FILLED: Final = (
    "saves the file; puts an empty record in place of the damage, so that the log goes on behind it"
)
_DERIVED: Final = "builds queues and index anew from the log"
_NOTHING: Final = "nothing"
_OTHER: Final = "nothing: another member of the group has the same log"
_LOST: Final = "the messages that stood there are lost"

ADVICE: Final[dict[str, Advice]] = {
    "crc": Advice("the body of a message is not what was sent", _FILLED),
    "log-chain": Advice(_LOST, _FILLED),
    "log-parts": Advice(_LOST, _FILLED),
    "log-zeros": Advice(_LOST, _FILLED),
    "log-cut": Advice(_LOST, _FILLED),
    "log-end": Advice("the newest messages are lost", "builds queues and index for what is left"),
    "log-gap": Advice(
        "a file of the log is missing: nothing before it is read, and its messages are lost",
        "puts an empty file in its place, so that what lies before it is read again",
    ),
    "log-size": Advice(
        "a broker does not open this store", "saves a file that is too short and fills it up"
    ),
    "time-none": Advice("searches by time miss the message", _NOTHING),
    "time-back": Advice("searches by time may miss what is near", _NOTHING),
    "entry-missing": Advice("the message is in the log, but no consumer gets it", _DERIVED),
    "entry-place": Advice("consumers get another message, or an error", _DERIVED),
    "entry-size": Advice("consumers get an error in place of the message", _DERIVED),
    "entry-tag": Advice("consumers that filter by tag may miss the message", _DERIVED),
    "entry-surplus": Advice("consumers get an error, or a message of elsewhere", _DERIVED),
    "entry-hole": Advice("consumers wait here, or miss messages", _DERIVED),
    "queue-gap": Advice(
        "a file of the queue is missing: what lies before it is not read", _DERIVED
    ),
    "queue-size": Advice("a broker does not open this store", _DERIVED),
    "index-missing": Advice("the message is not found by its key", _DERIVED),
    "index-surplus": Advice("a search reads a message that has not the key", _DERIVED),
    "index-nowhere": Advice("a search finds nothing where the index says", _DERIVED),
    "index-time": Advice("searches by key and time may miss the message", _DERIVED),
    "index-chain": Advice("searches by key may miss messages", _DERIVED),
    "index-slot": Advice("searches by key may miss messages", _DERIVED),
    "index-header": Advice("searches by key may skip the file", _DERIVED),
    "index-order": Advice("searches by key may miss messages", _DERIVED),
    "index-size": Advice("a broker does not open this store", _DERIVED),
    "ext-unit": Advice("consumers that filter may miss the message", _DERIVED),
    "ext-none": Advice("the filter reads the message itself, which is slower", _NOTHING),
    "table": Advice(
        "the broker uses the backup, or begins with an empty table",
        "sets the file aside and puts its backup in place, if that can be read",
    ),
    "checkpoint-none": Advice("the next start takes longer", _DERIVED),
    "checkpoint-page": Advice("the next start goes by store times, or reads the log", _DERIVED),
    "checkpoint-ahead": Advice("the log has lost its end", _DERIVED),
    "checkpoint-index": Advice("the next start builds queues and index anew", _DERIVED),
    "raft-table": Advice(
        "this member of a raft group does not start",
        "nothing: start it with an empty store, its group gives it everything",
    ),
    "raft-epochs": Advice(
        "this member of a raft group does not start",
        "nothing: start it with an empty store, its group gives it everything",
    ),
    "dledger-entry": Advice("the raft group of RocketMQ reads nothing behind this", _OTHER),
    "dledger-record": Advice(_LOST, _OTHER),
    "dledger-index": Advice("the raft group of RocketMQ finds another entry here", _OTHER),
}


def advice(kind: str) -> Advice:
    """What a kind of finding means, and what a repair does."""
    return ADVICE[kind]
