"""What can be wrong with a peer's bytes, and Kafka's error codes.

ProtocolError
├── MalformedFrame      the stream cannot be cut into frames any more
├── MalformedMessage    a frame's body does not follow its API and version
├── UnsupportedVersion  a version (or API) we do not speak
└── MalformedBatch      a record batch that must not be stored or cannot be read
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """The codes that record batches need."""

    NONE = 0
    CORRUPT_MESSAGE = 2
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87


class ProtocolError(Exception):
    """The peer sent bytes that break Kafka's protocol."""


class MalformedFrame(ProtocolError):
    """A frame's size or header cannot be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MalformedBatch(ProtocolError):
    """A record batch that cannot be taken: `code` is what Kafka answers for it."""

    def __init__(
        self,
        reason: str,
        *,
        code: ErrorCode = ErrorCode.INVALID_RECORD,
        index: int | None = None,
    ) -> None:
        super().__init__(reason if index is None else f"record {index}: {reason}")
        self.reason = reason
        self.code = code
        self.index = index
