"""Metrics of retained client state: producers, transactional ids, committed offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sized

from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.exposition import Exposition


class RememberedSource:
    """Metrics of the state retained for clients."""

    def __init__(self, *, producers: Sized, transactions: Sized, progress: Sized) -> None:
        self._counted = (
            (metrics.PRODUCERS_REMEMBERED, producers),
            (metrics.TRANSACTIONAL_IDS, transactions),
            (metrics.COMMITTED_OFFSETS, progress),
        )

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        for metric, things in self._counted:
            page.add(metric, len(things))
        yield
