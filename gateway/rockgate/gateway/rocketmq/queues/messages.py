"""Makes the messages of a batch, at once or in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeVar

from rockgate.gateway.rocketmq.cluster.brokers import QueueName, SendingBrokers
from rockgate.gateway.rocketmq.queues.delayed import DelayRule, may_delay, to_delayed_messages
from rockgate.gateway.rocketmq.queues.line import WaitingRequest
from rockgate.gateway.transcode.remote.sent_records import SentRecords, to_messages, unique_key
from rockgate.gateway.transcode.remote.whole_batches import SYS_FLAG, to_whole
from rockgate.protocol.kafka.records.batch import BatchHeader
from rockgate.protocol.kafka.records.bounds import Bounds
from rockgate.protocol.kafka.records.record import open_records
from rockgate.protocol.remoting.command import Command

A = TypeVar("A")


class OpeningThreads(Protocol):
    """Where batches that take long are opened."""

    @property
    def bounds(self) -> Bounds:
        """The limits of a batch."""
        ...

    async def run(self, work: Callable[[], A]) -> A:
        """Run work in a thread."""
        ...


class BatchForm(NamedTuple):
    """What becomes of a topic's batches."""

    delay: DelayRule = DelayRule.NONE
    is_whole: bool = False
    """Whether a batch is one message, as it came."""

    @property
    def is_alone(self) -> bool:
        """Whether a batch has a request, or several, for itself."""
        return self.is_whole or self.delay is not DelayRule.NONE


PLAIN: Final = BatchForm()


async def send_messages(
    brokers: SendingBrokers, queue: QueueName, request: WaitingRequest
) -> Command:
    """Send what the batches of a request have become, and return the broker's answer."""
    made = [batch.sent for batch in request.batches if batch.sent]
    whole = made[0].whole if made else None
    if whole is not None:
        assert len(made) == 1, "such a batch has a request for itself"
        return await brokers.send_alone(
            queue, whole.body, whole.properties, request.born_ms, SYS_FLAG
        )
    return await brokers.send(queue, b"".join([each.body for each in made]), request.born_ms)


def make_messages(
    body: bytes,
    header: BatchHeader,
    born_ms: int,
    now_ms: int,
    form: BatchForm,
    bounds: Bounds,
) -> SentRecords:
    """Return a batch as messages; MalformedBatch if that is impossible."""
    delay = form.delay
    if form.is_whole:
        return SentRecords(b"", header.record_count, whole=to_whole(body, header))
    data, unique = open_records(body, header, bounds=bounds), unique_key(header)
    if delay is not DelayRule.NONE and may_delay(data):
        delayed = to_delayed_messages(
            data,
            header,
            born_ms=born_ms,
            now_ms=now_ms,
            unique=unique,
            levels_only=delay is DelayRule.LEVELS,
            bounds=bounds,
        )
        if delayed is not None:
            return delayed
    return to_messages(data, header, born_ms=born_ms, unique=unique, bounds=bounds)
