"""Metrics of decoded record batches."""

from __future__ import annotations

from collections.abc import Iterator

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.exposition import Exposition


class BatchSource:
    """Metrics of batches that readers skipped."""

    def __init__(self, threads: BatchThreads) -> None:
        self._threads = threads

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        page.add(metrics.UNREADABLE, self._threads.unreadable_count)
        page.add(metrics.TOO_LARGE, self._threads.too_large_count)
        yield
