"""What a hook sees of a request, before it is carried out and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of a request; filled in before the hooks that run after it are called."""

    code: int = -1
    """RocketMQ's response code: 0 for success, and -1 while the request is not answered."""
    remark: str = ""
    """The reason given to the client, if there is one."""
    seconds: float = 0.0
    """From the hooks that run before to those that run after."""


@dataclass(slots=True, kw_only=True)
class SendContext:
    """A message or a batch that a producer sends."""

    client: str
    """HOST:PORT of the producer's connection."""
    producer_group: str
    topic: str
    queue_id: int
    """As requested; negative lets the broker choose."""
    body_bytes: int
    properties: str
    """Encoded as on the wire; those of a batch's messages are in its body."""
    is_batch: bool
    is_oneway: bool
    message_id: str = ""
    """The offset message id, once it is stored; a batch has several, separated by commas."""
    queue_offset: int = -1
    outcome: Outcome = field(default_factory=Outcome)


@dataclass(slots=True, kw_only=True)
class ConsumeContext:
    """A consumer's request for messages, or a message that it sends back."""

    client: str
    """HOST:PORT of the consumer's connection."""
    consumer_group: str
    topic: str
    """Of a message that is sent back: the topic it came from, if the client says so."""
    kind: str
    """`pull`, `pop` or `send back`."""
    queue_id: int = -1
    offset: int = -1
    """Where a pull starts; of a message that is sent back its position in the log."""
    count_max: int = 0
    answer_bytes: int = 0
    """Size of the response, once it is known."""
    outcome: Outcome = field(default_factory=Outcome)


class Hook(Protocol):
    """Any subset of these methods, on any object."""

    def before_send(self, context: SendContext, /) -> None:
        """Called before a message or batch is validated and stored."""

    def after_send(self, context: SendContext, /) -> None:
        """Called when the response is known, before it is sent."""

    def before_consume(self, context: ConsumeContext, /) -> None:
        """Called before a pull, a pop or a send-back is carried out."""

    def after_consume(self, context: ConsumeContext, /) -> None:
        """Called when the response is known, before it is sent."""
