"""Metrics that clients pushed: the last values of each."""

from __future__ import annotations

from collections.abc import Iterator

from rockgate.gateway.kafka.client_metrics.clients import PushingClients
from rockgate.gateway.telemetry import client_metrics as metrics
from rockgate.gateway.telemetry.exposition import Exposition

_PIECE = 50
"""Values that are written before other work gets its turn."""


class ClientMetricsSource:
    """Metrics of clients."""

    def __init__(self, clients: PushingClients) -> None:
        self._clients = clients

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics, client by client."""
        count = 0
        for client in self._clients.walk():
            count += 1
            for at, ((name, attributes), last) in enumerate(list(client.series.items())):
                text = ",".join(f"{key}={value}" for key, value in attributes)
                page.add(metrics.CLIENT_METRIC, last, name, client.client_id, client.instance, text)
                if at % _PIECE == _PIECE - 1:
                    yield
            yield
        page.add(metrics.CLIENTS, count)
        page.add(metrics.HIDDEN, self._clients.hidden_count)
        for error, pushes in sorted(self._clients.pushes.items()):
            page.add(metrics.PUSHES, pushes, error)
