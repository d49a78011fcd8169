"""OpenTelemetry spans around sends: docs/reference/sdk.md, "Traces"."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.sdk.memorynet import run
from tests.sdk.producer.test_producer import ProducerWorld, refusing
from tests.sdk.producer.test_transaction import Checked

from rockgate.protocol.entry import parse_properties
from rockgate.sdk import Message, Received, Refused
from rockgate.sdk.observe.telemetry import context_of, hook


class Spans:
    """A provider of the application, which records its calls."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_send_is_a_span_and_its_context_travels() -> None:
    async def scenario() -> None:
        world, spans = ProducerWorld(), Spans()
        async with world.producer(tracer_provider=spans.provider) as producer:
            with spans.provider.get_tracer("shop").start_as_current_span("order") as order:
                result = await producer.send(Message("t", b"tea", tag="new", keys=["o-1"]))
            client_id = producer.client.id
        span, _ = spans.ended
        assert (span.name, span.kind) == ("send t", trace.SpanKind.PRODUCER)
        assert span.parent is not None
        assert span.parent.span_id == order.get_span_context().span_id
        found = attributes(span)
        assert found == {
            "messaging.client.id": client_id,
            "messaging.system": "rocketmq",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": "t",
            "messaging.destination.partition.id": f"a:{result.queue.id}",
            "messaging.message.id": result.message_id,
            "messaging.message.body.size": 3,
            "messaging.rocketmq.client_group": "shop",
            "messaging.rocketmq.message.type": "normal",
            "messaging.rocketmq.message.tag": "new",
            "messaging.rocketmq.message.keys": ("o-1",),
        }
        [(_, request)] = world.sent()
        carried = parse_properties(request.fields["i"].encode())
        assert span.context is not None
        ids = f"{span.context.trace_id:032x}-{span.context.span_id:016x}"
        assert carried["traceparent"] == f"00-{ids}-{span.context.trace_flags:02x}"
        read = context_of(Received.of("t", b"tea", properties=carried))
        seen = trace.get_current_span(read).get_span_context()
        assert (seen.trace_id, seen.span_id) == (span.context.trace_id, span.context.span_id)

    run(scenario())


def test_kinds_delays_and_batches_are_reported() -> None:
    async def scenario() -> None:
        world, spans = ProducerWorld(), Spans()
        when = datetime(2040, 1, 1, tzinfo=UTC)
        async with world.producer(tracer_provider=spans.provider, checker=Checked()) as producer:
            await producer.send(Message("t", b"x", delay=3))
            await producer.send(Message("t", b"x", delay=timedelta(seconds=9)))
            await producer.send(Message("t", b"x", delay=when))
            await producer.send_batch([Message("t", b"x"), Message("t", b"yz")])
            async with producer.transaction(Message("t", b"x")):
                pass
        prefix = "messaging.rocketmq.message."
        level, length, time, batch, half = map(attributes, spans.ended)
        assert (level[f"{prefix}type"], level[f"{prefix}delay_time_level"]) == ("delay", 3)
        assert length[f"{prefix}delay_ms"] == 9000
        assert time[f"{prefix}delivery_timestamp"] == int(when.timestamp() * 1000)
        assert batch["messaging.batch.message_count"] == 2
        assert batch["messaging.message.body.size"] == 3
        assert "messaging.message.id" not in batch
        assert half[f"{prefix}type"] == "transaction"

    run(scenario())


def test_a_send_that_failed_is_a_span_with_its_error() -> None:
    async def scenario() -> None:
        world, spans = ProducerWorld(), Spans()
        world.brokers["a"].script[310] = refusing(13)
        async with world.producer(tracer_provider=spans.provider) as producer:
            with pytest.raises(Refused):
                await producer.send(Message("t", b"x"))
        [span] = spans.ended
        assert span.status.status_code is trace.StatusCode.ERROR
        assert attributes(span)["error.type"] == "Refused"
        assert [event.name for event in span.events] == ["exception"]

    run(scenario())


def test_without_a_provider_or_without_the_package_there_are_no_spans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert hook(None, client_id="c") is None, "nobody has set one up"
    provider = TracerProvider()
    assert hook(provider, client_id="c") is not None
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    assert hook(None, client_id="c") is not None, "the application's own"
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert hook(None, client_id="c") is None, "not installed"
