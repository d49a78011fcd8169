"""Results of sends and transactions: values that every part of the SDK uses."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from rockgate.protocol.entry import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from rockgate.protocol.remoting.codes import ResponseCode


class Queue(msgspec.Struct, frozen=True, order=True):
    """One queue of a topic: where a message can be sent to."""

    topic: str
    broker: str
    id: int


class SendStatus(IntEnum):
    """How safely a message was stored."""

    OK = ResponseCode.SUCCESS
    FLUSH_DISK_TIMEOUT = ResponseCode.FLUSH_DISK_TIMEOUT
    SLAVE_NOT_AVAILABLE = ResponseCode.SLAVE_NOT_AVAILABLE
    FLUSH_SLAVE_TIMEOUT = ResponseCode.FLUSH_SLAVE_TIMEOUT


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message is stored."""

    status: SendStatus
    message_id: str
    """Assigned by this client before it was sent."""
    offset_message_id: str
    """Its physical location, from the broker's response."""
    queue: Queue
    offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    region: str | None = None
    """From the broker's response."""


class Outcome(IntEnum):
    """How a local transaction ended, as it travels in 37."""

    UNKNOWN = 0
    COMMIT = TRANSACTION_COMMIT
    ROLLBACK = TRANSACTION_ROLLBACK

    def __str__(self) -> str:
        return self.name
