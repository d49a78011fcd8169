"""Errors on either protocol, below the meaning of a message.

    ProtocolError            the peer broke the protocol: the connection is closed
    └── MalformedFrame       a size or a header that cannot be read

Each protocol's own `errors` module adds to these. The text of an error is a sentence; where the
error adds a place to it, `reason` is the clause that follows the place.
"""


class ProtocolError(Exception):
    """The peer broke the protocol; nothing it sends after this can be trusted."""


class MalformedFrame(ProtocolError):
    """A frame's size or header cannot be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
