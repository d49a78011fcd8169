"""Errors of Kafka's protocol.

    ProtocolError            the peer broke the protocol: the connection is closed
    ├── MalformedFrame       a size or a header that cannot be read
    ├── UnsupportedVersion   an API, or a version of it, that is not served
    ├── MalformedMessage     a body that does not fit its declaration
    └── MalformedBatch       a record batch that contradicts its header
        └── BatchTooLarge    one that exceeds the bounds when it is decoded

`ErrorCode` is for a request that was understood and could not be served. It is part of a response,
and the connection stays open.
"""

from collections.abc import Sequence

from rockgate.protocol.errors import MalformedFrame, ProtocolError
from rockgate.protocol.kafka.error_codes import ErrorCode

__all__ = [
    "BatchTooLarge",
    "ErrorCode",
    "MalformedBatch",
    "MalformedFrame",
    "MalformedMessage",
    "ProtocolError",
    "UnsupportedVersion",
]


class UnsupportedVersion(ProtocolError):
    """The API key, or the requested version of it, is not supported."""

    def __init__(self, api_key: int, version: int) -> None:
        super().__init__(f"API key {api_key} version {version} is not supported.")
        self.api_key = api_key
        self.version = version


class MalformedMessage(ProtocolError):
    """A body that does not fit its declaration, with the path of the field that is wrong."""

    def __init__(self, api: str, version: int, path: str, reason: str) -> None:
        super().__init__(f"{api} v{version} is invalid{f' at {path}' if path else ''}: {reason}.")
        self.api = api
        self.version = version
        self.path = path
        self.reason = reason


class MalformedBatch(ProtocolError):
    """A record batch that is refused: `code` is the error code that Kafka answers."""

    def __init__(
        self,
        reason: str,
        *,
        code: ErrorCode = ErrorCode.INVALID_RECORD,
        index: int | None = None,
        bad: Sequence[tuple[int, str]] = (),
    ) -> None:
        super().__init__(reason if index is None else f"Record {index}: {reason}")
        self.reason = reason
        self.code = code
        self.index = index
        """The record's place in its batch, where one record is invalid."""
        self.bad = bad if bad or index is None else ((index, reason),)
        """Every invalid record, by its place in the batch, with the reason."""


class BatchTooLarge(MalformedBatch):
    """A record batch with more bytes, records or headers than may be decoded."""

    def __init__(self, reason: str, *, index: int | None = None) -> None:
        super().__init__(reason, code=ErrorCode.MESSAGE_TOO_LARGE, index=index)
