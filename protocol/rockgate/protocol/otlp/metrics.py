"""Reads pushed metrics: of each point its name, attributes and value, and nothing else.

The numbers of the fields are those of opentelemetry/proto/metrics/v1/metrics.proto. Of histograms
and summaries the count and the sum are read, as points of their own. Attributes of the resource
(the group, the transactional id) are in each of its points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rockgate.protocol.otlp.wire import (
    Budget,
    Data,
    MalformedMetrics,
    Range,
    double_in,
    fields,
    range_of,
    signed_in,
    text_in,
)

NAME_SIZE_MAX: Final = 512
"""Bytes of a metric's name, and of an attribute's key or value."""
ATTRIBUTES_MAX: Final = 32
"""Attributes of a point, and of a resource, which are in each of its points."""
ATTRIBUTES_SIZE_MAX: Final = 2_048
"""Characters of all attributes of a point: pages repeat them for each."""

# MetricsData, ResourceMetrics, ScopeMetrics, Resource: where the next message is.
_RESOURCE_METRICS: Final = 1
_RESOURCE, _SCOPE_METRICS = 1, 2
_METRICS: Final = 2
_RESOURCE_ATTRIBUTES: Final = 1
# Metric: its name, and the message of its kind.
_NAME, _GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL, _SUMMARY = 1, 5, 7, 9, 10, 11
_POINTS: Final = 1
# NumberDataPoint.
_AS_DOUBLE, _AS_INT, _ATTRIBUTES = 4, 6, 7
# The points of histograms and summaries agree about these.
_COUNT, _TOTAL = 4, 5
_ATTRIBUTES_OF: Final = {_HISTOGRAM: 9, _EXPONENTIAL: 1, _SUMMARY: 7}
# KeyValue and AnyValue.
_KEY, _VALUE = 1, 2
_STRING, _BOOL, _INT, _FLOAT = 1, 2, 3, 4
_SIGN: Final = 1 << 63

Attributes: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much one push may contain."""

    fields_max: int = 200_000
    points_max: int = 5_000


@dataclass(frozen=True, slots=True)
class Point:
    """One value of one metric."""

    name: str
    value: float
    attributes: Attributes = field(default=())


USUAL: Final = Bounds()


def read_metrics(data: Data, bounds: Bounds = USUAL) -> list[Point]:
    """All points of a MetricsData message; MalformedMetrics if it is none, or has too many."""
    reader = _Reader(data, bounds)
    found: list[Point] = []
    for point in reader.points():
        if len(found) == bounds.points_max:
            raise MalformedMetrics(f"Metrics have more than {bounds.points_max:,} points.")
        found.append(point)
    return found


class _Reader:
    """Reads one message."""

    def __init__(self, data: Data, bounds: Bounds) -> None:
        self._data = data
        self._budget = Budget(bounds.fields_max)

    def points(self) -> Iterator[Point]:
        """The points of all resources."""
        for resource in self._inside((0, len(self._data)), _RESOURCE_METRICS):
            attributes: Attributes = ()
            for found in self._inside(resource, _RESOURCE):
                attributes += self._attributes(found, _RESOURCE_ATTRIBUTES)
                _check_count(len(attributes))
            for scope in self._inside(resource, _SCOPE_METRICS):
                for metric in self._inside(scope, _METRICS):
                    yield from self._metric(metric, attributes)

    def _metric(self, within: Range, inherited: Attributes) -> Iterator[Point]:
        name, kinds = "", []
        for number, value in fields(self._data, within, self._budget):
            if number == _NAME:
                name = text_in(self._data, value, NAME_SIZE_MAX)
            elif number in (_GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL, _SUMMARY):
                kinds.append((number, range_of(value)))
        if not name:
            raise MalformedMetrics("A metric has no name.")
        for kind, found in kinds:
            for point in self._inside(found, _POINTS):
                if kind in _ATTRIBUTES_OF:
                    yield from self._distribution(name, point, _ATTRIBUTES_OF[kind], inherited)
                else:
                    yield from self._number(name, point, inherited)

    def _number(self, name: str, within: Range, inherited: Attributes) -> Iterator[Point]:
        found: float | None = None
        for number, value in fields(self._data, within, self._budget):
            if number == _AS_DOUBLE:
                found = double_in(self._data, value)
            elif number == _AS_INT:
                found = signed_in(self._data, value)
        if found is not None:
            yield Point(name, found, _merged(inherited, self._attributes(within, _ATTRIBUTES)))

    def _distribution(
        self, name: str, within: Range, number_of_attributes: int, inherited: Attributes
    ) -> Iterator[Point]:
        attributes = _merged(inherited, self._attributes(within, number_of_attributes))
        for number, value in fields(self._data, within, self._budget):
            if number == _COUNT:
                yield Point(f"{name}.count", signed_in(self._data, value), attributes)
            elif number == _TOTAL:
                yield Point(f"{name}.sum", double_in(self._data, value), attributes)

    def _attributes(self, within: Range, number: int) -> Attributes:
        found: list[tuple[str, str]] = []
        for pair in self._inside(within, number):
            found.append(self._attribute(pair))
            _check_count(len(found))
        return tuple(found)

    def _attribute(self, within: Range) -> tuple[str, str]:
        key = text = ""
        for number, value in fields(self._data, within, self._budget):
            if number == _KEY:
                key = text_in(self._data, value, NAME_SIZE_MAX)
            elif number == _VALUE:
                text = self._any(range_of(value))
        return key, text

    def _any(self, within: Range) -> str:
        """A value as text; lists and maps, which no client sends, are empty."""
        text = ""
        for number, value in fields(self._data, within, self._budget):
            if number == _STRING:
                text = text_in(self._data, value, NAME_SIZE_MAX)
            elif number == _FLOAT:
                text = repr(double_in(self._data, value))
            elif isinstance(value, int) and number == _BOOL:
                text = "true" if value else "false"
            elif isinstance(value, int) and number == _INT:
                text = str(value - (value & _SIGN) * 2)
        return text

    def _inside(self, within: Range, wanted: int) -> Iterator[Range]:
        """The messages of one field."""
        for number, value in fields(self._data, within, self._budget):
            if number == wanted:
                yield range_of(value)


def _check_count(count: int) -> None:
    if count > ATTRIBUTES_MAX:
        raise MalformedMetrics(f"A point has more than {ATTRIBUTES_MAX} attributes.")


def _merged(inherited: Attributes, own: Attributes) -> Attributes:
    merged = tuple(sorted({**dict(inherited), **dict(own)}.items()))
    size = sum(len(key) + len(text) for key, text in merged)
    if size > ATTRIBUTES_SIZE_MAX:
        raise MalformedMetrics(
            f"The attributes of a point have {size:,} of {ATTRIBUTES_SIZE_MAX:,} bytes."
        )
    return merged
