"""Headers of half messages: end (37), check (39) and resume (323)."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32, Int64


class EndTransactionHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """37: commit (8), roll back (12) or still unknown (0)."""

    producer_group: str
    topic: str | None = None
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None
    bname: str | None = None


class CheckTransactionHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """39: check the outcome of a half message; the message itself is the body."""

    topic: str | None = None
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    bname: str | None = None


class ResumeCheckHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """323: check a half message again that was discarded after its checks."""

    topic: str | None = None
    msg_id: str
