"""Transactions: a producer's decision, and a broker's check-back."""

from gantrymq.protocol.headers.base import Header


class EndTransactionRequest(Header, frozen=True, kw_only=True):
    """The two offsets are those of the half message: in its queue, and in the log."""

    topic: str | None = None
    producer_group: str
    tran_state_table_offset: int
    commit_log_offset: int
    commit_or_rollback: int
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None
    bname: str | None = None


class CheckTransactionRequest(Header, frozen=True, kw_only=True):
    """From a broker to a producer, with the message as its body."""

    topic: str | None = None
    tran_state_table_offset: int
    commit_log_offset: int
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    bname: str | None = None


class ResumeCheckRequest(Header, frozen=True, kw_only=True):
    """Names a message in TRANS_CHECK_MAX_TIME_TOPIC by its offset id."""

    topic: str | None = None
    msg_id: str | None = None


class CheckHalfRequest(Header, frozen=True, kw_only=True):
    """Names a half message without a decision by its offset id, and the topic it goes to."""

    topic: str
    msg_id: str
