"""OpenTelemetry spans around sends and listeners, where `opentelemetry` is installed and set up.

The span's context travels in the messages' properties (`traceparent`, `tracestate`, and whatever
else the application's propagator has), so that a consumer of a message continues the trace:

    with tracer.start_as_current_span("work", context=context_of(message)): …

A consumer with listeners does so automatically: the span of a call is linked to those of the sends,
belongs to the message's trace if there is only one message, and is the listener's current span.

Names and attributes are those of OpenTelemetry's conventions for messaging and for RocketMQ. The
package is not needed: without it, or without a provider, nothing of this is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rockgate.sdk.hooks import ConsumeHook, ConsumeKind, Consuming, SendHook, Sending, SendKind
from rockgate.sdk.received import Received

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

_TYPES = {SendKind.NORMAL: "normal", SendKind.HALF: "transaction", SendKind.DELAYED: "delay"}


def hook(
    provider: TracerProvider | None, *, client_id: str, namespace: str = ""
) -> SendHook | None:
    """Makes spans with this provider, or the application's own; None if there is none."""
    tracer = _tracer(provider)
    return None if tracer is None else SpanHook(tracer, client_id, namespace)


def consume_hook(
    provider: TracerProvider | None, *, client_id: str, namespace: str = ""
) -> ConsumeHook | None:
    """The same for a consumer."""
    tracer = _tracer(provider)
    return None if tracer is None else ConsumeSpanHook(tracer, client_id, namespace)


def _tracer(provider: TracerProvider | None) -> Tracer | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    chosen = provider or trace.get_tracer_provider()
    if isinstance(chosen, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return chosen.get_tracer("rockgate.sdk")


def context_of(message: Received) -> Context:
    """The context that a message carries: what its reader does belongs to the sender's trace."""
    from opentelemetry import propagate

    return propagate.extract(message.properties)


class SpanHook(SendHook):
    """One span of kind PRODUCER for each call."""

    def __init__(self, tracer: Tracer, client_id: str, namespace: str) -> None:
        self._tracer = tracer
        self._common = _common("send", client_id, namespace)

    def before_send(self, sending: Sending) -> None:
        """Begin the span, and add its context to the messages."""
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


class ConsumeSpanHook(ConsumeHook):
    """One span of kind CONSUMER for each call of a listener."""

    def __init__(self, tracer: Tracer, client_id: str, namespace: str) -> None:
        self._tracer = tracer
        self._common = _common("process", client_id, namespace)

    def before_consume(self, consuming: Consuming) -> None:
        """Begin the span, and make it the listener's."""
        from opentelemetry import context, trace

        messages = consuming.messages
        first = messages[0]
        carried = [context_of(message) for message in messages]
        contexts = [trace.get_current_span(each).get_span_context() for each in carried]
        span = self._tracer.start_span(
            f"process {first.topic}",
            context=carried[0] if len(messages) == 1 else None,
            kind=trace.SpanKind.CONSUMER,
            links=[trace.Link(each) for each in contexts if each.is_valid],
            attributes={
                **self._common,
                "messaging.destination.name": first.topic,
                "messaging.destination.partition.id": f"{first.queue.broker}:{first.queue.id}",
                "messaging.consumer.group.name": consuming.group,
                "messaging.rocketmq.client_group": consuming.group,
                **_of_received(messages),
            },
        )
        token = None
        if not consuming.is_iterated:
            # An iteration may continue in another task, where this could not be undone.
            token = context.attach(trace.set_span_in_context(span))
        consuming.notes[self] = span, token

    def after_consume(self, consuming: Consuming) -> None:
        """End the span, with what went wrong."""
        from opentelemetry import context
        from opentelemetry.trace import StatusCode

        span: Span
        span, token = consuming.notes[self]
        if token is not None:
            context.detach(token)
        if consuming.kind is not ConsumeKind.SUCCESS:
            assert consuming.kind is not None
            error = consuming.error
            kind = consuming.kind.value if error is None else type(error).__qualname__
            span.set_attribute("error.type", kind)
            if error is not None:
                span.record_exception(error)
            span.set_status(StatusCode.ERROR, str(error) if error is not None else kind)
        span.end()


def _common(operation: str, client_id: str, namespace: str) -> dict[str, Any]:
    found = {
        "messaging.system": "rocketmq",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.client.id": client_id,
    }
    if namespace:
        found["messaging.rocketmq.namespace"] = namespace
    return found


def _of_received(messages: Sequence[Received]) -> dict[str, Any]:
    size = sum(message.body_size for message in messages)
    if len(messages) > 1:
        return {
            "messaging.batch.message_count": len(messages),
            "messaging.message.body.size": size,
        }
    [message] = messages
    found: dict[str, Any] = {
        "messaging.message.id": message.message_id,
        "messaging.message.body.size": size,
    }
    if message.tag is not None:
        found["messaging.rocketmq.message.tag"] = message.tag
    if message.keys:
        found["messaging.rocketmq.message.keys"] = list(message.keys)
    return found


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
