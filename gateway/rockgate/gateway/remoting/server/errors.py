"""Errors of RocketMQ requests: a response code and a remark for the client.

    Refused         a request that was understood and is not done

Where nothing can be answered, Disconnect of `gateway.stream` closes the connection.
The store's errors have their codes in `CODES`; what is not in it is our bug.
"""

from collections.abc import Mapping

from rockgate.gateway.security.errors import SecurityError
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store import errors as store


class Refused(Exception):
    """A request that is rejected, with the reason."""

    def __init__(self, code: ResponseCode, remark: str) -> None:
        super().__init__(f"{code.name}: {remark}")
        self.code = code
        self.remark = remark


CODES: Mapping[type[Exception], ResponseCode] = {
    store.StoreFull: ResponseCode.SERVICE_NOT_AVAILABLE,
    store.StoreBusy: ResponseCode.SYSTEM_BUSY,
    store.DiskFailed: ResponseCode.SERVICE_NOT_AVAILABLE,
    store.StoreClosed: ResponseCode.SERVICE_NOT_AVAILABLE,
    store.StoreReadOnly: ResponseCode.SERVICE_NOT_AVAILABLE,
    store.StoreLocked: ResponseCode.SERVICE_NOT_AVAILABLE,
    store.StoreCorrupt: ResponseCode.SYSTEM_ERROR,
    store.FormatTooNew: ResponseCode.SYSTEM_ERROR,
    store.FlushTimeout: ResponseCode.FLUSH_DISK_TIMEOUT,
    store.EntryTooLarge: ResponseCode.MESSAGE_ILLEGAL,
    store.UnknownTopic: ResponseCode.TOPIC_NOT_EXIST,
    store.TopicExists: ResponseCode.TOPIC_EXIST_ALREADY,
    store.UnknownQueue: ResponseCode.SYSTEM_ERROR,
    store.InvalidTopic: ResponseCode.INVALID_PARAMETER,
    store.InvalidGroup: ResponseCode.INVALID_PARAMETER,
    store.OffsetOutOfRange: ResponseCode.PULL_OFFSET_MOVED,
    store.StoreError: ResponseCode.SYSTEM_ERROR,
    SecurityError: ResponseCode.INVALID_PARAMETER,
}


def code_of(error: Exception) -> ResponseCode | None:
    """The response code of an error, or None for a bug."""
    for kind in type(error).__mro__:
        if kind in CODES:
            return CODES[kind]
    return None
