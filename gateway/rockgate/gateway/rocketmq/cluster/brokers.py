"""What the gateway asks of brokers: everything here that has a socket stands behind `Brokers`.

A broker is named, and its master is asked. The answer is returned whatever its code; BrokerLost is
raised if there is none, and then it is unknown whether the request was carried out.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import msgspec

from rockgate.gateway.rocketmq.cluster.errors import BrokerLost, BrokerRefused
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.pull import PullHeader

H = TypeVar("H", bound=msgspec.Struct)


class QueueName(NamedTuple):
    """A queue of the cluster, by its topic's name on RocketMQ's wire."""

    topic: str
    broker: str
    queue_id: int


class Brokers(Protocol):
    """All masters of a cluster."""

    async def ask(
        self,
        broker: str,
        code: RequestCode,
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
        *,
        timeout_s: float = 5.0,
    ) -> Command:
        """Ask a master; BrokerLost if no answer comes."""
        ...

    async def send(self, queue: QueueName, body: Buffer, born_ms: int) -> Command:
        """Send messages to a queue in one request; BrokerLost if no answer comes."""
        ...


class PullAnswer(NamedTuple):
    """The answer to a pull."""

    answer: Command
    is_slaves: bool
    """Whether a slave gave it, which may not have everything yet."""


class ReadingBrokers(Brokers, Protocol):
    """What readers ask of them."""

    async def pull(self, broker: str, header: PullHeader, *, timeout_s: float) -> PullAnswer:
        """Pull from a master, or from a slave without one; BrokerLost if no answer comes."""
        ...


class SendingBrokers(Brokers, Protocol):
    """What writers ask of them."""

    async def send_alone(
        self, queue: QueueName, body: Buffer, properties: str, born_ms: int, sys_flag: int = 0
    ) -> Command:
        """Send one message to a queue (310); BrokerLost if no answer comes."""
        ...


class DataBrokers(SendingBrokers, ReadingBrokers, Protocol):
    """What writers and readers ask of them."""


def checked(answer: Command) -> Command:
    """An answer that is a success; BrokerRefused if it is not."""
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerRefused(answer.code, answer.remark or "")
    return answer


def read(answer: Command, kind: type[H]) -> H:
    """The header of an answer; BrokerLost if it cannot be decoded, for then nothing is known."""
    try:
        return headers.read(answer, kind)
    except MalformedRequest as wrong:
        raise BrokerLost(f"cannot decode the answer: {wrong.reason}") from None
