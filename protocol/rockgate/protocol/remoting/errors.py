"""Errors of RocketMQ's protocol.

    ProtocolError            the peer broke the protocol: the connection is closed
    ├── MalformedFrame       an invalid size, or a header that cannot be read
    └── TooManyPending       too many requests are waiting for their responses
    MalformedRequest         a request that does not fit its declaration: it is answered
    MalformedContent         a message, batch or compressed body that is invalid
    └── ContentTooLarge      a compressed body that exceeds the caller's limit

Subclasses of ProtocolError end the connection, the others only the request that caused them.
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
    """Too many requests are waiting for their responses."""


class MalformedRequest(ValueError):
    """A request whose fields or body are invalid: `what` names the request, `reason` says why."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} is invalid: {reason}.")
        self.what = what
        self.reason = reason


class MalformedContent(ValueError):
    """Bytes that are not a valid message, batch or compressed body."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ContentTooLarge(MalformedContent):
    """A compressed body that exceeds the limit when decompressed; it may be valid."""
