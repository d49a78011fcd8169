"""The errors that the SDK raises.

    SdkError                 everything below
    ├── InvalidMessage       a name, size or setting that no broker accepts; nothing was sent
    ├── InvalidClientConfig  a client's file or environment says something that cannot be used
    ├── NotSupported         this broker does not have it, or is too old; nothing happened
    ├── NoNameServer         no address of a name server was given
    ├── NoRoute              no name server knows the topic, nor a topic to create it from
    ├── Overloaded           too many requests wait for their turn; nothing was sent
    ├── Unreachable          the connection could not be made, or broke before the answer came
    │   ├── NotRocketMQ      something else answers at that port
    │   └── TlsFailed        no TLS connection: a certificate was refused, or there is no TLS
    ├── TimedOut             no answer in time; the request may still have taken effect
    ├── Refused              the peer answered with an error: `code` and `remark` are its own
    ├── SendFailed           every attempt failed; `attempts` says where and why, `sent` what went
    └── Closed               the client is closed, or was never opened

InvalidMessage, InvalidClientConfig and NoNameServer are also ValueErrors, Unreachable is a
ConnectionError and TimedOut a TimeoutError. `code` identifies the failure as RocketMQ's clients
number it: the broker's own code, or one of `ErrorCode`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from rockgate.protocol.remoting.codes import ResponseCode, response_name

if TYPE_CHECKING:
    from rockgate.sdk.results import SendResult


REMARK_MAX: Final = 1000
"""Characters of a peer's remark that an error shows; `remark` has them all."""


class ErrorCode(IntEnum):
    """Codes of client-side errors, as in RocketMQ's client."""

    CONNECT_BROKER = 10001
    ACCESS_BROKER_TIMEOUT = 10002
    BROKER_NOT_EXIST = 10003
    NO_NAME_SERVER = 10004
    NOT_FOUND_TOPIC = 10005


class SdkError(Exception):
    """An operation of the SDK failed, or may have failed."""

    code: int | None = None


class InvalidMessage(SdkError, ValueError):
    """No broker would accept it; nothing was sent."""

    code = ResponseCode.MESSAGE_ILLEGAL


class InvalidClientConfig(SdkError, ValueError):
    """A client's file or environment cannot be used; the text has no secrets."""


class NotSupported(SdkError):
    """The broker does not have it, or is too old for it; nothing happened."""

    code = ResponseCode.VERSION_NOT_SUPPORTED


class NoNameServer(SdkError, ValueError):
    """No address of a name server was given."""

    code = ErrorCode.NO_NAME_SERVER


class NoRoute(SdkError):
    """No name server knows which broker has the topic."""

    def __init__(self, reason: str, code: int = ErrorCode.NOT_FOUND_TOPIC) -> None:
        super().__init__(reason)
        self.code = code


class Overloaded(SdkError):
    """Too many requests are queued; nothing was sent."""

    code = ResponseCode.SYSTEM_BUSY


class Unreachable(SdkError, ConnectionError):
    """There is no connection to the peer; after `retry_in_s` one will be tried again."""

    code = ErrorCode.CONNECT_BROKER

    def __init__(self, reason: str, retry_in_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_in_s = retry_in_s


class NotRocketMQ(Unreachable):
    """The peer at this address does not speak RocketMQ's protocol."""


class TlsFailed(Unreachable):
    """No TLS connection: a certificate was refused, or the peer does not speak TLS there."""


class TimedOut(SdkError, TimeoutError):
    """No response in time."""

    code = ErrorCode.ACCESS_BROKER_TIMEOUT


class Refused(SdkError):
    """The peer responded with an error. Its remark is printed on one line, and truncated."""

    def __init__(self, what: str, code: int, remark: str | None) -> None:
        text = (remark or "no remark")[:REMARK_MAX]
        if not text.isprintable():
            text = ascii(text)
        text = text.rstrip(". ")
        super().__init__(f"{what[:1].upper()}{what[1:]}: {response_name(code)} ({code}): {text}.")
        self.code = code
        self.remark = remark


class SendFailed(SdkError):
    """Every attempt failed. `sent` are the messages of the same call that went before.

    `code` is that of the last attempt.
    """

    def __init__(
        self,
        reason: str,
        attempts: Sequence[str] = (),
        sent: Sequence[SendResult] = (),
        code: int | None = None,
    ) -> None:
        super().__init__(" ".join([reason, *attempts]))
        self.code = code
        self.attempts = tuple(attempts)
        self.sent = tuple(sent)


class Closed(SdkError):
    """The client is closed, or was never opened."""
