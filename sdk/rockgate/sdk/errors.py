"""What can go wrong for whoever asks.

    SdkError                 everything below
    ├── InvalidMessage       a name, size or setting that no broker would take; nothing was sent
    ├── NoRoute              no name server knows the topic, nor a topic to make it after
    ├── Unreachable          the connection could not be made, or broke before the answer came
    ├── TimedOut             no answer in time; what was asked for may have happened all the same
    ├── Refused              the peer answered with an error: `code` and `remark` are its own
    ├── SendFailed           every attempt failed; `attempts` says where and why, `sent` what went
    └── Closed               the client is closed, or was never opened

InvalidMessage is also a ValueError, Unreachable a ConnectionError and TimedOut a TimeoutError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rockgate.protocol.remoting.codes import response_name

if TYPE_CHECKING:
    from rockgate.sdk.message import SendResult


class SdkError(Exception):
    """Something that the SDK was asked for did not happen, or may not have."""


class InvalidMessage(SdkError, ValueError):
    """No broker would take it; nothing was sent."""


class NoRoute(SdkError):
    """Nobody knows which broker has the topic."""


class Unreachable(SdkError, ConnectionError):
    """There is no connection to the peer; after `retry_in_s` one will be tried again."""

    def __init__(self, reason: str, retry_in_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_in_s = retry_in_s


class TimedOut(SdkError, TimeoutError):
    """No answer in time."""


class Refused(SdkError):
    """The peer answered with an error."""

    def __init__(self, what: str, code: int, remark: str | None) -> None:
        super().__init__(f"{what}: {response_name(code)} ({code}): {remark or 'no remark'}")
        self.code = code
        self.remark = remark


class SendFailed(SdkError):
    """Every attempt failed. `sent` are the messages of the same call that went before."""

    def __init__(
        self, reason: str, attempts: Sequence[str] = (), sent: Sequence[SendResult] = ()
    ) -> None:
        super().__init__("; ".join([reason, *attempts]))
        self.attempts = tuple(attempts)
        self.sent = tuple(sent)


class Closed(SdkError):
    """The client is closed, or was never opened."""
