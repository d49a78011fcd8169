"""The last hour of a server: a ring of samples, and the rates between them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from rockgate.cli.admin.metrics import Metrics

INTERVAL_S: Final = 5.0
SAMPLES_MAX: Final = 720
"""An hour."""
GAP_S: Final = 4 * INTERVAL_S
"""A longer pause between two samples has no rate: the server was away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one page of metrics says; None where the server does not say it."""

    at_ms: int
    messages_in: float
    bytes_in: float
    bytes_out: float
    requests: float
    errors: float
    loop_delay_s: float
    loop_samples: float
    lag: float | None
    disk_used: float | None
    delayed: float | None
    half_messages: float | None
    dead_letters: float
    connections: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What happened between two samples, a second."""

    at_ms: int
    messages_in: float
    bytes_in: float
    bytes_out: float
    requests: float
    errors: float
    loop_delay_ms: float


def sample_of(metrics: Metrics, at_ms: int) -> Sample:
    """The numbers of a page that the overview shows."""
    delay = "rockgate_event_loop_delay_seconds"
    return Sample(
        at_ms=at_ms,
        messages_in=metrics.total("rockgate_put_messages_total"),
        bytes_in=metrics.total("rockgate_put_bytes_total"),
        bytes_out=metrics.total(
            "rockgate_kafka_response_bytes_total", "rockgate_remoting_response_bytes_total"
        ),
        requests=metrics.total(
            "rockgate_kafka_request_seconds_count", "rockgate_remoting_request_seconds_count"
        ),
        errors=metrics.total("rockgate_kafka_errors_total", "rockgate_remoting_errors_total"),
        loop_delay_s=metrics.total(f"{delay}_sum"),
        loop_samples=metrics.total(f"{delay}_count"),
        lag=metrics.value("rockgate_lag"),
        disk_used=metrics.value("rockgate_disk_used_ratio"),
        delayed=metrics.value("rockgate_delay_waiting"),
        half_messages=metrics.value("rockgate_half_messages"),
        dead_letters=metrics.total("rockgate_dead_letters_total"),
        connections=metrics.total("rockgate_kafka_connections", "rockgate_remoting_connections"),
    )


class History:
    """The samples of an hour, oldest first."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self.rates: deque[Rates] = deque(maxlen=SAMPLES_MAX)

    def add(self, sample: Sample) -> None:
        """Add a sample; a server that was restarted counts from zero again and has no rate."""
        if self.samples:
            found = rates_between(self.samples[-1], sample)
            if found is not None:
                self.rates.append(found)
        self.samples.append(sample)

    @property
    def latest(self) -> Sample | None:
        """The newest sample."""
        return self.samples[-1] if self.samples else None


def rates_between(old: Sample, new: Sample) -> Rates | None:
    """The rates from one sample to the next; None after a restart or a gap."""
    seconds = (new.at_ms - old.at_ms) / 1000
    if not 0 < seconds <= GAP_S or new.requests < old.requests:
        return None
    samples = new.loop_samples - old.loop_samples
    delay_s = (new.loop_delay_s - old.loop_delay_s) / samples if samples > 0 else 0.0
    return Rates(
        at_ms=new.at_ms,
        messages_in=max(0.0, new.messages_in - old.messages_in) / seconds,
        bytes_in=max(0.0, new.bytes_in - old.bytes_in) / seconds,
        bytes_out=max(0.0, new.bytes_out - old.bytes_out) / seconds,
        requests=(new.requests - old.requests) / seconds,
        errors=max(0.0, new.errors - old.errors) / seconds,
        loop_delay_ms=max(0.0, delay_s) * 1000,
    )
