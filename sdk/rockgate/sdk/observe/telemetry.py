"""OpenTelemetry spans around sends, where `opentelemetry` is installed and set up.

The span's context travels in the messages' properties (`traceparent`, `tracestate`, and whatever
else the application's propagator has), so that whoever reads a message goes on with the trace:

    with tracer.start_as_current_span("work", context=context_of(message)): …

Names and attributes are those of OpenTelemetry's conventions for messaging and for RocketMQ. The
package is not needed: without it, or without a provider, nothing of this is done.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rockgate.sdk.hooks import SendHook, Sending, SendKind
from rockgate.sdk.received import Received

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

_TYPES = {SendKind.NORMAL: "normal", SendKind.HALF: "transaction", SendKind.DELAYED: "delay"}


def hook(
    provider: TracerProvider | None, *, client_id: str, namespace: str = ""
) -> SendHook | None:
    """Makes spans with this provider, or the application's own; None if there is none."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    chosen = provider or trace.get_tracer_provider()
    if isinstance(chosen, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return SpanHook(chosen.get_tracer("rockgate.sdk"), client_id, namespace)


def context_of(message: Received) -> Context:
    """The context that a message carries: what its reader does belongs to the sender's trace."""
    from opentelemetry import propagate

    return propagate.extract(message.properties)


class SpanHook(SendHook):
    """One span of kind PRODUCER for each call."""

    def __init__(self, tracer: Tracer, client_id: str, namespace: str) -> None:
        self._tracer = tracer
        self._common: dict[str, Any] = {
            "messaging.system": "rocketmq",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.client.id": client_id,
        }
        if namespace:
            self._common["messaging.rocketmq.namespace"] = namespace

    def before_send(self, sending: Sending) -> None:
        """Begin the span, and have its context travel."""
        from opentelemetry import propagate, trace

        topic = sending.messages[0].topic
        span = self._tracer.start_span(
            f"send {topic}",
            kind=trace.SpanKind.PRODUCER,
            attributes={
                **self._common,
                "messaging.destination.name": topic,
                "messaging.rocketmq.client_group": sending.group,
                **_of_messages(sending),
            },
        )
        propagate.inject(sending.properties, context=trace.set_span_in_context(span))
        sending.notes[self] = span

    def after_send(self, sending: Sending) -> None:
        """End the span, with the ids or with what went wrong."""
        from opentelemetry.trace import StatusCode

        span: Span = sending.notes[self]
        if len(sending.message_ids) == 1:
            span.set_attribute("messaging.message.id", sending.message_ids[0])
        if sending.results:
            queue = sending.results[0].queue
            place = f"{queue.broker}:{queue.id}"
            span.set_attribute("messaging.destination.partition.id", place)
        if sending.error is not None:
            kind = type(sending.error).__qualname__
            span.set_attribute("error.type", kind)
            span.record_exception(sending.error)
            span.set_status(StatusCode.ERROR, str(sending.error) or kind)
        span.end()


def _of_messages(sending: Sending) -> dict[str, Any]:
    if len(sending.messages) > 1:
        return {
            "messaging.batch.message_count": len(sending.messages),
            "messaging.message.body.size": sum(len(each.body) for each in sending.messages),
        }
    [message] = sending.messages
    found: dict[str, Any] = {
        "messaging.message.body.size": len(message.body),
        "messaging.rocketmq.message.type": _TYPES[sending.kind],
    }
    if message.tag is not None:
        found["messaging.rocketmq.message.tag"] = message.tag
    if message.keys:
        found["messaging.rocketmq.message.keys"] = list(message.keys)
    if isinstance(message.delay, datetime):
        when_ms = round(message.delay.timestamp() * 1000)
        found["messaging.rocketmq.message.delivery_timestamp"] = when_ms
    elif isinstance(message.delay, timedelta):
        found["messaging.rocketmq.message.delay_ms"] = message.delay // timedelta(milliseconds=1)
    elif message.delay is not None:
        found["messaging.rocketmq.message.delay_time_level"] = message.delay
    return found
