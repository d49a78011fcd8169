"""Hooks that are notified of every send, every call of a listener, and every request.

    class Counting(SendHook):
        def after_send(self, sending):
            print(sending.kind, sending.error or sending.results)

    Producer(…, hooks=[Counting()])

A `SendHook` sees each call of a producer once, however many attempts it makes: before anything is
packed, and when it has succeeded or failed. Before, it may add properties, or raise to forbid the
send. What it raises after is logged and changes nothing. A `ConsumeHook` sees what each pull brings
and may take messages from it; then each call of a consumer's listener, or each message that is
iterated over. Whatever it raises is logged. An
`RpcHook` belongs to a client and sees every request and response with its header's fields, to sign
them, for example.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol

from rockgate.protocol.remoting.command import Buffer, Command, Fields

if TYPE_CHECKING:
    from rockgate.sdk.message import Message
    from rockgate.sdk.received import Received
    from rockgate.sdk.results import Outcome, SendResult

_log: Final = logging.getLogger(__name__)


class SendKind(Enum):
    """The kind of a send. A message with a delay and a transaction counts as delayed."""

    NORMAL = "normal"
    HALF = "half"
    DELAYED = "delayed"


class Sending:
    """One send: the messages, and at the end the result."""

    __slots__ = (
        "error",
        "group",
        "is_oneway",
        "kind",
        "message_ids",
        "messages",
        "notes",
        "properties",
        "results",
    )

    def __init__(
        self, group: str, messages: Sequence[Message], kind: SendKind, *, is_oneway: bool = False
    ) -> None:
        self.group = group
        self.messages = messages
        self.kind = kind
        self.is_oneway = is_oneway
        self.properties: Fields = {}
        """Properties that hooks add to every message of the call."""
        self.message_ids: Sequence[str] = ()
        """Known once the messages are packed, also if they were not sent."""
        self.results: Sequence[SendResult] = ()
        self.error: BaseException | None = None
        self.notes: dict[object, Any] = {}
        """State of hooks between the two calls, each under its own key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a local transaction, as sent to the broker."""

    group: str
    topic: str
    message_id: str
    transaction_id: str
    tag: str | None
    keys: str | None
    """All keys, separated by spaces."""
    store_host: str
    """The broker that has the half message."""
    outcome: Outcome
    is_from_check: bool


class SendHook:
    """Is notified of sends; override the methods of interest."""

    def before_send(self, sending: Sending) -> None:
        """Called before a send; an exception prevents it."""

    def after_send(self, sending: Sending) -> None:
        """Called after a send, with `results` or `error` set."""

    def after_end(self, ended: Ended) -> None:
        """Called when the outcome of a local transaction was sent to a broker."""


class ConsumeKind(Enum):
    """How a call of a listener ended."""

    SUCCESS = "success"
    FAILED = "failed"
    """The listener asked for some of them to be redelivered."""
    TIME_OUT = "time-out"
    """It took longer than the consume time-out, however it ended."""
    EXCEPTION = "exception"
    """It raised; all messages are redelivered."""


class Consuming:
    """One call of a listener: its messages, and at the end the outcome."""

    __slots__ = (
        *("done_count", "error", "group", "is_iterated", "kind", "messages", "notes"),
        "took_s",
    )

    def __init__(
        self, group: str, messages: Sequence[Received], *, is_iterated: bool = False
    ) -> None:
        self.group = group
        self.messages = messages
        """All of one topic and one queue."""
        self.is_iterated = is_iterated
        """Whether the messages were iterated or polled, and not given to a listener."""
        self.kind: ConsumeKind | None = None
        """None before the end."""
        self.done_count = 0
        """How many messages are done, from the first on; the rest is redelivered."""
        self.took_s = 0.0
        self.error: BaseException | None = None
        self.notes: dict[object, Any] = {}
        """State of hooks between the two calls, each under its own key."""


class ConsumeHook:
    """Is notified of pulls and of calls of listeners; override the methods of interest."""

    def filter(self, messages: Sequence[Received]) -> Sequence[Received]:
        """Filter the pulled messages of one queue; those not returned are skipped."""
        return messages

    def before_consume(self, consuming: Consuming) -> None:
        """Called before a listener."""

    def after_consume(self, consuming: Consuming) -> None:
        """Called after a listener, whatever its outcome."""


class RpcHook(Protocol):
    """Is notified of requests to name servers and brokers, and of their responses."""

    def before_request(self, address: str, code: int, fields: Fields, body: Buffer) -> None:
        """Called before a request is sent; fields may be added."""

    def after_response(self, address: str, code: int, answer: Command) -> None:
        """Called with its response."""


def begin(hooks: Sequence[SendHook], sending: Sending) -> None:
    """Notify all of them; if one forbids the send, those before it are notified of that too."""
    for count, hook in enumerate(hooks):
        try:
            hook.before_send(sending)
        except BaseException as forbidden:
            sending.error = forbidden
            end(hooks[:count], sending)
            raise


def end(hooks: Sequence[SendHook], sending: Sending) -> None:
    """Notify all hooks, the last first."""
    for hook in reversed(hooks):
        try:
            hook.after_send(sending)
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("hook failed after a send to %s", sending.messages[0].topic)


def notify_ended(hooks: Sequence[SendHook], ended: Ended) -> None:
    """Notify all hooks of a transaction's outcome."""
    for hook in hooks:
        try:
            hook.after_end(ended)
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("hook failed after the end of %s", ended.message_id)


def filtered(hooks: Sequence[ConsumeHook], messages: list[Received]) -> list[Received]:
    """The pulled messages that pass all filters. A filter that fails removes nothing."""
    for hook in hooks:
        if not messages:
            break
        try:
            accepted = {message.offset for message in hook.filter(tuple(messages))}
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("hook failed to filter messages of %s", messages[0].topic)
        else:
            messages = [message for message in messages if message.offset in accepted]
    return messages


def begin_consume(hooks: Sequence[ConsumeHook], consuming: Consuming) -> None:
    """Notify all hooks. None can prevent a call of the listener."""
    for hook in hooks:
        try:
            hook.before_consume(consuming)
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("hook failed before %s is consumed", consuming.messages[0].topic)


def end_consume(hooks: Sequence[ConsumeHook], consuming: Consuming) -> None:
    """Notify all hooks, the last first."""
    for hook in reversed(hooks):
        try:
            hook.after_consume(consuming)
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("hook failed after %s was consumed", consuming.messages[0].topic)
