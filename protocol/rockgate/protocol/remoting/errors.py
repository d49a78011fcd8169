"""Errors of RocketMQ's protocol.

    ProtocolError            the peer broke the protocol: the connection is closed
    ├── MalformedFrame       a size that cannot be, or a header that cannot be read
    └── TooManyPending       every number that a request may have waits for its answer
    MalformedRequest         a request that does not fit its declaration: it is answered
    MalformedContent         a message, batch or compressed body that is not what it says
    └── ContentTooLarge      a compressed body that becomes more than the caller has room for

The first two end a connection, the others only the request that brought them.
"""

from rockgate.protocol.errors import MalformedFrame, ProtocolError

__all__ = [
    "ContentTooLarge",
    "MalformedContent",
    "MalformedFrame",
    "MalformedRequest",
    "ProtocolError",
    "TooManyPending",
]


class TooManyPending(ProtocolError):
    """As many requests as are allowed wait for their answers already."""


class MalformedRequest(ValueError):
    """A request whose fields or body do not fit: `what` says which request, `reason` why."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason


class MalformedContent(ValueError):
    """Bytes that are not the message, batch or compressed body they are said to be."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ContentTooLarge(MalformedContent):
    """A compressed body that becomes larger than it may; it may be whole."""
