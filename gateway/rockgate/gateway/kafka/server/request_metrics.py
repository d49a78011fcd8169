"""Metrics of responses: the errors they carry, and the bytes that a Fetch sends of each topic.

The error of a response is its own code, or the first one of its topics, partitions or groups. The
search is bounded, so that a response of ten thousand costs no more than one of a hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.handler import Row
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.protocol.kafka.api import ApiKey
from rockgate.protocol.kafka.schema import Encoded, declaration_of
from rockgate.protocol.kafka.schema.kinds import ArrayOf, OrNull, Struct
from rockgate.store.api.topics import Topic

Services = TypeVar("Services")
_HOT = (ApiKey.PRODUCE, ApiKey.FETCH)
LOOKED_AT_MAX: Final = 64


def counting(
    rows: Sequence[Row[Services]], stats: RequestStats, traffic: Traffic
) -> tuple[Row[Services], ...]:
    """The table of handlers, with errors and traffic counted as responses are written."""

    def looking(api_key: int) -> Callable[[Any], None]:
        find = first_partition_error if api_key in _HOT else first_error
        is_fetch = api_key == ApiKey.FETCH

        def look(response: Any) -> None:
            code = find(response)
            if code:
                stats.of(api_key).count_error(code)
            if is_fetch:
                traffic.count(response.topics)

        return look

    return tuple(replace(row, look=looking(int(row.key))) for row in rows)


class Traffic:
    """Bytes of records by topic; a version of Fetch has its name or its id."""

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self._by_id: dict[bytes, int] = {}

    def count(self, topics: Iterable[Any]) -> None:
        """Count the records of a response."""
        for name, topic_id, partitions in topics:
            size = 0
            for partition in partitions:
                for records in partition.records or ():
                    size += len(records)
            if not size:
                continue
            if name:
                self._by_name[name] = self._by_name.get(name, 0) + size
            else:
                self._by_id[topic_id] = self._by_id.get(topic_id, 0) + size

    def fetched(self, topic: Topic) -> int:
        """Bytes sent from a topic since the start."""
        name = names.to_kafka(topic.name)
        return self._by_name.get(name, 0) + self._by_id.get(topic.id, 0)

    def forget(self, topic: Topic) -> None:
        """Drop a deleted topic."""
        self._by_name.pop(names.to_kafka(topic.name), None)
        self._by_id.pop(topic.id, None)


def first_partition_error(response: Any) -> int:
    """The error of a Produce or Fetch response, which have hand-written codecs and are frequent."""
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                return int(partition.error_code)
    return int(getattr(response, "error_code", 0))


def first_error(response: Any) -> int:
    """The error code of a response, or the first one in it; 0 if it has none."""
    kind = type(response)
    lists = _LISTS.get(kind)
    if lists is None:
        lists = _LISTS[kind] = _lists_of(kind)
    own, lists_named = lists
    if own and response.error_code:
        return int(response.error_code)
    for name in lists_named:
        for item in (getattr(response, name) or ())[:LOOKED_AT_MAX]:
            if type(item) is Encoded:
                continue
            code = first_error(item)
            if code:
                return code
    return 0


_LISTS: dict[type, tuple[bool, tuple[str, ...]]] = {}


def _lists_of(kind: type) -> tuple[bool, tuple[str, ...]]:
    """Whether a message or a part of one has an error, and which of its lists may have some."""
    fields = declaration_of(kind).fields
    own = any(spec.name == "error_code" for spec in fields)
    return own, tuple(spec.name for spec in fields if _may_fail(spec.kind))


def _may_fail(kind: Any) -> bool:
    """Whether a field holds a list of items that have an error, or hold such lists."""
    if isinstance(kind, OrNull):
        kind = kind.kind
    if not isinstance(kind, ArrayOf) or not isinstance(kind.element, Struct):
        return False
    own, lists = _lists_of(kind.element.type)
    return own or bool(lists)
