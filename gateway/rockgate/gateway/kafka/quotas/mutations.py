"""The quota of partitions that a client creates or deletes, as handlers see it."""

from __future__ import annotations

from typing import Protocol

from rockgate.gateway.kafka.request.handler import Call


class MutationQuota(Protocol):
    """How many partitions a client may create or delete."""

    def take_partitions(self, call: Call, count: int, *, is_strict: bool) -> None:
        """Count partitions; THROTTLING_QUOTA_EXCEEDED if they are too many for a strict client."""
        ...
