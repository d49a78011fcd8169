"""Whether this gateway leads a partition: what writers, readers and sequences ask.

    lease = leadership.lease(queue)
    lease.is_served         whether clients are served now; else NOT_LEADER_OR_FOLLOWER
    lease.since             the loop's time at which that began: another value is another term

A term ends when another gateway leads the partition, when the broker is lost, or when this process
was stopped for a second. In a new term nothing that was known of the queue's producers holds, for
others may have written meanwhile. Watchers learn of both ends of a term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from rockgate.gateway.rocketmq.cluster.brokers import QueueName

NEVER: Final = float("inf")
"""When a partition that this gateway does not lead will be served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLease:
    """One partition at one time."""

    is_served: bool
    """Whether clients are served: it is led here, or was a moment ago."""
    since: float
    """When this term begins; still to come while the former leader may serve."""


SERVED: Final = PartitionLease(is_served=True, since=0.0)
"""The lease of a gateway that is alone, in its first and only term."""
NOT_SERVED: Final = PartitionLease(is_served=False, since=NEVER)


class LeadershipWatcher(Protocol):
    """Who learns of terms of the queues that were asked for."""

    def gained(self, queue: QueueName) -> None:
        """A term begins: clients are served from now on."""

    def lost(self, queue: QueueName) -> None:
        """A term has ended: waiting batches are to be dropped, and nothing more is to be sent."""


class Leadership(Protocol):
    """What this gateway leads."""

    def lease(self, queue: QueueName) -> PartitionLease:
        """The lease of a queue's partition now; from now on watchers learn of its terms."""
        ...

    def is_elsewhere(self, queue: QueueName) -> bool:
        """Whether another gateway is known to lead a queue, and it is no longer served here.

        Reads need no more: any gateway may read, and while no one knows a leader one may be asked.
        """
        ...

    def watch(self, watcher: LeadershipWatcher) -> None:
        """Tell a watcher of every term that begins or ends."""
        ...


class AlwaysLeads:
    """The leadership of a gateway that is alone."""

    def lease(self, queue: QueueName) -> PartitionLease:
        """Served, always."""
        return SERVED

    def is_elsewhere(self, queue: QueueName) -> bool:
        """Nothing is."""
        return False

    def watch(self, watcher: LeadershipWatcher) -> None:
        """Nothing ever changes."""
