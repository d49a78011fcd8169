"""Shared by drivers of clients that are Python libraries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from behaviours.driver import Admin, Consumer, Member, Producer, Received, Sending
from behaviours.hosting import apart
from behaviours.login import python_options
from behaviours.program import ProgramDriver


class LibraryDriver:
    """A driver that opens the classes it names; subclasses define how their client differs."""

    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
    why_not = ""
    sends_null_headers = True
    cannot: Mapping[str, str] = {}

    opens_producer: ClassVar[Callable[[str, Sending], Producer]]
    opens_consumer: ClassVar[Callable[[str, int, int], Consumer]]
    opens_member: ClassVar[Callable[[str, str, str, int | None, str | None], Member]]
    opens_admin: ClassVar[Callable[[str], Admin]]

    def producer(self, bootstrap: str, sending: Sending) -> Producer:
        return type(self).opens_producer(bootstrap, sending)

    def consumer(
        self, bootstrap: str, *, wait_ms_max: int = 500, bytes_max: int = 1 << 20
    ) -> Consumer:
        return type(self).opens_consumer(bootstrap, wait_ms_max, bytes_max)

    def member(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        session_ms: int | None = None,
        instance: str | None = None,
        protocol: str | None = None,
    ) -> Member:
        return type(self).opens_member(bootstrap, group, topic, session_ms, instance)

    def admin(self, bootstrap: str) -> Admin:
        return type(self).opens_admin(bootstrap)

    def apart(self) -> ProgramDriver:
        return apart(inspect.getfile(type(self)), type(self).__name__, self)


# kafka-python, and aiokafka, which has the same calls as coroutines


def producer_options(bootstrap: str, sending: Sending) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "acks": sending.acks,
        "enable_idempotence": sending.is_idempotent,
        "compression_type": None if sending.codec == "none" else sending.codec,
        "linger_ms": sending.linger_ms,
        "max_request_size": sending.request_bytes_max,
        "transactional_id": sending.transactional_id,
        **python_options(bootstrap),
    }


def consumer_options(bootstrap: str, wait_ms_max: int, bytes_max: int) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": wait_ms_max,
        "max_partition_fetch_bytes": bytes_max,
        **python_options(bootstrap),
    }


def member_options(
    bootstrap: str, group: str, session_ms: int | None, instance: str | None
) -> dict[str, Any]:
    session = {} if session_ms is None else {"session_timeout_ms": session_ms}
    return {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 300,
        "group_instance_id": instance,
        "isolation_level": "read_committed",
        **python_options(bootstrap),
        **session,
    }


def received(found: Mapping[Any, Iterable[Any]]) -> list[Received]:
    """The messages of a poll, of all partitions."""
    return [
        Received(r.partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp)
        for records in found.values()
        for r in records
    ]


class PlacedReads:
    """Offsets of a consumer, by (topic, partition)."""

    place_type: ClassVar[Callable[[str, int], Any]]
    _client: Any

    def _done(self, outcome: Any) -> Any:
        """The result of a call, awaited if necessary."""
        return outcome

    def beginning(self, topic: str, partition: int) -> int:
        place = type(self).place_type(topic, partition)
        return int(self._done(self._client.beginning_offsets([place]))[place])

    def end(self, topic: str, partition: int) -> int:
        place = type(self).place_type(topic, partition)
        return int(self._done(self._client.end_offsets([place]))[place])

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = type(self).place_type(topic, partition)
        found = self._done(self._client.offsets_for_times({place: timestamp_ms}))[place]
        return None if found is None else int(found.offset)

    def commit(self) -> None:
        self._done(self._client.commit())

    def committed(self, topic: str, partition: int) -> int | None:
        place = type(self).place_type(topic, partition)
        found: int | None = self._done(self._client.committed(place))
        return found
