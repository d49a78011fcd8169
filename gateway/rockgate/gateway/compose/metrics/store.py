"""Metrics of the store: positions, fsyncs, segments, disk usage, delayed messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.durations import Durations
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.store.store import Store


class Failing(Protocol):
    """Periodic steps with names, whose failures are counted."""

    def failures(self) -> Iterator[tuple[str, int]]:
        """Return every name and how often it has failed."""


class UpkeepSource:
    """Metrics of failed steps of upkeep."""

    def __init__(self, *steps: Failing) -> None:
        self._steps = steps

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        for steps in self._steps:
            for name, count in steps.failures():
                page.add(metrics.UPKEEP_FAILURES, count, name)
        yield


class StoreSource:
    """Metrics of the log and its files."""

    def __init__(self, store: Store, stalls: Stalls) -> None:
        self._store = store
        self._stalls = stalls
        self._fsyncs = Durations()
        store.attach(on_synced=self._fsyncs.add)

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        store, flusher = self._store, self._store.flusher
        page.add(metrics.LOG_START, store.log.start)
        page.add(metrics.LOG_END, store.log.end)
        page.add(metrics.LOG_FLUSHED, flusher.flushed)
        page.add(metrics.FLUSH_WAITING, flusher.waiting_count)
        page.add_durations(metrics.FSYNCS, self._fsyncs)
        page.add(metrics.DISK_FAILED, int(store.syncs.failure is not None))
        page.add(metrics.DISK, store.retention.disk.used_percent / 100)
        page.add(metrics.STALLED, int(store.allocator.is_stalled))
        page.add(metrics.STALLS, self._stalls.count)
        page.add(metrics.STALLED_SECONDS, self._stalls.stalled_ms / 1_000)
        page.add(metrics.SLOW_APPENDS, self._stalls.slow_appends.count)
        page.add(metrics.FAILED_APPENDS, store.appender.failed_count)
        self._delays(page)
        self._compaction(page)
        yield
        yield from self._segments(page)

    def _delays(self, page: Exposition) -> None:
        deliveries = self._store.deliveries
        page.add(metrics.DELAY_WAITING, self._store.delay.waiting_count)
        page.add(metrics.DELAY_BYTES, self._store.delay.units.size)
        page.add(metrics.DELAY_LATE, self._store.delay.late_ms() / 1_000)
        page.add(metrics.DELAY_DELIVERED, deliveries.delivered_count)
        page.add(metrics.DELAY_PUT_OFF, deliveries.put_off_count)
        page.add(metrics.DELAY_DROPPED, deliveries.dropped_count)
        page.add(metrics.DELAY_LOST, deliveries.lost_count)

    def _compaction(self, page: Exposition) -> None:
        cleaner = self._store.cleaner
        page.add(metrics.COMPACTIONS, cleaner.cleaned_count)
        page.add(metrics.COMPACTION_DROPPED, cleaner.dropped_count)
        page.add(metrics.COMPACTION_READ, cleaner.read_bytes)
        page.add(metrics.COMPACTION_WRITTEN, cleaner.written_bytes)
        page.add(metrics.COMPACTION_DAMAGED, cleaner.damaged_count)

    def _segments(self, page: Exposition) -> Iterator[None]:
        row = self._store.segments.row
        live = dead = unweighed = 0
        for segment in row[:-1]:
            known = self._store.retention.usage.live_bytes(segment)
            if known is None:
                unweighed += 1
            else:
                live += known
                dead += segment.size - known
            yield
        page.add(metrics.SEGMENTS, len(row))
        page.add(metrics.SEGMENT_BYTES, sum(segment.size for segment in row))
        page.add(metrics.LIVE_BYTES, live)
        page.add(metrics.DEAD_BYTES, dead)
        page.add(metrics.UNWEIGHED, unweighed)
