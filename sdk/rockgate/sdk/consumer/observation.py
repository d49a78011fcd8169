"""What a consumer reports of itself: to hooks, spans, RocketMQ's trace and statistics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rockgate.sdk.client.client import Client
from rockgate.sdk.consumer.delivery.observed import Observed
from rockgate.sdk.consumer.queues.assignment import Assignment
from rockgate.sdk.consumer.queues.puller import PullCounts
from rockgate.sdk.hooks import ConsumeHook
from rockgate.sdk.message import Message
from rockgate.sdk.observe import message_trace, telemetry
from rockgate.sdk.observe.consume_trace import ConsumeTraceHook
from rockgate.sdk.observe.message_trace import Tracer
from rockgate.sdk.observe.statistics import ConsumerStatistics, Statistics
from rockgate.sdk.producer.outgoing import Packer
from rockgate.sdk.producer.router import Router
from rockgate.sdk.received import Received

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

BODY_SIZE_MAX = 4 * 1024 * 1024
COMPRESS_OVER = 4096


class Observation:
    """The observers of one consumer, which are closed with it."""

    def __init__(
        self,
        group: str,
        *,
        namespace: str = "",
        hooks: Sequence[ConsumeHook] = (),
        tracer_provider: TracerProvider | None = None,
        trace: bool | str = False,
    ) -> None:
        self._group = group
        self._namespace = namespace
        self.hooks = tuple(hooks)
        self._tracer_provider = tracer_provider
        self._trace_topic = message_trace.TOPIC if trace is True else trace or ""
        self._tracer: Tracer | None = None
        self.statistics = Statistics()

    def over(self, client: Client, consume_timeout_s: float) -> Observed:
        """The observers of listeners while a client is in use."""
        found = list(self.hooks)
        spans = telemetry.consume_hook(
            self._tracer_provider, client_id=client.id, namespace=self._namespace
        )
        if spans is not None:
            found.append(spans)
        if self._trace_topic:
            self._tracer = _tracer(client, self._group, self._trace_topic)
            found.append(ConsumeTraceHook(client.now_ms, self._tracer.take))
        return Observed(self._group, found, self.statistics, timeout_s=consume_timeout_s)

    def figures(
        self, assignment: Assignment[Received] | None = None, counts: PullCounts | None = None
    ) -> ConsumerStatistics:
        """The consumer's current statistics; queues and pulls only while it is open."""
        topics = self.statistics.topics(time.monotonic())
        if assignment is None or counts is None:
            return ConsumerStatistics(group=self._group, topics=topics)
        cached = [each for _, each in assignment.items()]
        return ConsumerStatistics(
            group=self._group,
            topics=topics,
            queue_count=len(cached),
            cached_count=sum(each.count for each in cached),
            cached_size=sum(each.size for each in cached),
            lag_count=sum(each.lag for each in cached),
            failed_pull_count=counts.failed,
            held_back_counts={limit.value: count for limit, count in counts.held_back.items()},
        )

    async def close(self, timeout_s: float) -> None:
        """Send the rest of the trace, if that can be done in time."""
        if self._tracer is not None:
            await self._tracer.close(timeout_s)

    def cancel(self) -> None:
        """Discard the remaining records."""
        if self._tracer is not None:
            self._tracer.cancel()


def _tracer(client: Client, group: str, topic: str) -> Tracer:
    packer = Packer(
        now_ms=client.now_ms, body_size_max=BODY_SIZE_MAX, compress_over=COMPRESS_OVER, namespace=""
    )
    router = Router(
        client,
        f"{message_trace.GROUP_PREFIX}-{group}",
        timeout_s=message_trace.SEND_S,
        retry_count=2,
        retry_not_ok=False,
        avoid_slow=False,
    )

    async def send(message: Message) -> None:
        await router.deliver(await packer.single(message), None, message_trace.SEND_S)

    return Tracer(send, topic)
