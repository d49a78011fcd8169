"""What a metric is: name, type, help and labels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MetricType(Enum):
    """A metric's type, as Prometheus defines it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    kind: MetricType
    about: str
    labels: tuple[str, ...] = ()
