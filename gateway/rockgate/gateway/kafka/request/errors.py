"""Errors of requests on Kafka's wire, and the table from the store's errors to Kafka's codes.

    RequestError       understood, and cannot be served: its code goes into the response

Two more kinds end a connection: Disconnect of `gateway.stream`, where the only answer is to close
(a failed Produce whose client wants no answer), and ProtocolError: the peer broke the protocol.
"""

from collections.abc import Mapping

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store import errors as store


class RequestError(Exception):
    """A request that cannot be served; `code` is what the response says."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.code = code
        self.reason = reason


CODES: Mapping[type[Exception], ErrorCode] = {
    store.StoreError: ErrorCode.UNKNOWN_SERVER_ERROR,
    store.StoreFull: ErrorCode.KAFKA_STORAGE_ERROR,
    store.StoreBusy: ErrorCode.REQUEST_TIMED_OUT,
    store.DiskFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    store.StoreClosed: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    store.StoreReadOnly: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    store.StoreLocked: ErrorCode.KAFKA_STORAGE_ERROR,
    store.StoreCorrupt: ErrorCode.KAFKA_STORAGE_ERROR,
    store.FormatTooNew: ErrorCode.KAFKA_STORAGE_ERROR,
    store.SettingChanged: ErrorCode.KAFKA_STORAGE_ERROR,
    store.FlushTimeout: ErrorCode.REQUEST_TIMED_OUT,
    store.EntryTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    store.UnknownTopic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    store.TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    store.UnknownQueue: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    store.InvalidTopic: ErrorCode.INVALID_TOPIC_EXCEPTION,
    store.InvalidGroup: ErrorCode.INVALID_GROUP_ID,
    store.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
}


def explain(error: RequestError | store.StoreError) -> tuple[ErrorCode, str]:
    """The error code and message of one part of a response."""
    if isinstance(error, RequestError):
        return error.code, error.reason
    return code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR, str(error)


def code_of(error: BaseException) -> ErrorCode | None:
    """The code of an error; None for one that is a bug."""
    if isinstance(error, RequestError):
        return error.code
    for kind in type(error).__mro__:
        if kind in CODES:
            return CODES[kind]
    return None


_COORDINATOR_CODES: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def coordinator_code(code: ErrorCode) -> ErrorCode:
    """The code as clients expect it of a coordinator: transient errors are retriable."""
    return _COORDINATOR_CODES.get(code, code)
