"""Writes metrics in the Prometheus text format.

Hand-written, because it is short, because it can run in slices, and because the official client
library takes longer to import than the server takes to start. A test parses it with that library.
"""

from __future__ import annotations

from collections.abc import Sequence

from rockgate.gateway.telemetry.durations import Durations
from rockgate.gateway.telemetry.metric import Metric, MetricType
from rockgate.gateway.telemetry.metrics import METRICS
from rockgate.gateway.telemetry.renamed import RENAMED

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exposition:
    """The `/metrics` page while it is being written."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Add a sample; label values come in the order of the metric's labels."""
        assert metric.kind is not MetricType.HISTOGRAM, metric.name
        self._of(metric).append(f"{metric.name}{_labels(metric, labels)} {_number(value)}")

    def add_durations(self, metric: Metric, durations: Durations, *labels: str) -> None:
        """Add a histogram."""
        assert metric.kind is MetricType.HISTOGRAM, metric.name
        lines, name, count = self._of(metric), metric.name, 0
        for bound, more in zip((*durations.bounds, "+Inf"), durations.counts, strict=True):
            count += more
            inside = _labels(metric, labels, f'le="{bound}"')
            lines.append(f"{name}_bucket{inside} {count}")
        lines.append(f"{name}_sum{_labels(metric, labels)} {_number(durations.seconds)}")
        lines.append(f"{name}_count{_labels(metric, labels)} {count}")

    def text(self) -> str:
        """Return the page: every metric that has a value, with its help and type."""
        parts: list[str] = []
        for name, lines in self._lines.items():
            metric = METRICS[name]
            parts.append(f"# HELP {name} {metric.about}")
            parts.append(f"# TYPE {name} {metric.kind.value}")
            parts += lines
            if (old := RENAMED.get(name)) is not None:
                parts.append(f"# HELP {old} Deprecated: use {name}.")
                parts.append(f"# TYPE {old} {metric.kind.value}")
                parts += [old + line[len(name) :] for line in lines]
        return "\n".join([*parts, ""])

    def _of(self, metric: Metric) -> list[str]:
        return self._lines.setdefault(metric.name, [])


def _labels(metric: Metric, values: Sequence[str], more: str = "") -> str:
    assert len(values) == len(metric.labels), metric.name
    pairs = [
        f'{name}="{_escaped(value)}"' for name, value in zip(metric.labels, values, strict=True)
    ]
    if more:
        pairs.append(more)
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    # Line separators that Python knows but the format does not would end the line for some parsers.
    text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text if text.isprintable() else text.encode("ascii", "backslashreplace").decode()


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
