"""Replication factors and assignments that clients request: one node has one replica.

Tools and files written for a cluster request two or three replicas and mean the default. They get
one, which every description then says; `topics.replication_strict` rejects them instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

REPLICATION_FACTOR = 1
_FACTOR_MAX = 3
_SERVER_S_CHOICE = -1


class Replicas:
    """Decides on the replicas of new partitions."""

    def __init__(self, node_id: int, *, is_strict: bool) -> None:
        self._node_id = node_id
        self._is_strict = is_strict

    def check_factor(self, factor: int) -> None:
        """INVALID_REPLICATION_FACTOR for a replication factor that is not accepted."""
        most = 1 if self._is_strict else _FACTOR_MAX
        if factor != _SERVER_S_CHOICE and not 1 <= factor <= most:
            why = (
                "topics.replication_strict is set"
                if self._is_strict
                else "there is a single broker"
            )
            raise RequestError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Replication factor {factor} must be -1 or from 1 to {most}: {why}.",
            )

    def check_assignment(self, nodes_of_partitions: Iterable[Sequence[int]]) -> None:
        """INVALID_REPLICA_ASSIGNMENT unless every partition is assigned to this node alone."""
        for nodes in nodes_of_partitions:
            if not nodes:
                raise _refusal("A partition has no assigned replicas.")
            for node_id in nodes:
                if node_id != self._node_id:
                    raise _refusal(
                        f"Broker {node_id} does not exist; this broker is {self._node_id}."
                    )
            if len(nodes) > 1:
                raise _refusal(f"Broker {self._node_id} appears more than once in an assignment.")


def check_numbering(indexes: Sequence[int]) -> None:
    """INVALID_REPLICA_ASSIGNMENT unless these are 0, 1, 2, … in any order."""
    if len(set(indexes)) != len(indexes):
        raise _refusal("A partition is assigned more than once.")
    if sorted(indexes) != list(range(len(indexes))):
        raise _refusal("Partition numbers of the assignment must be consecutive, starting at 0.")


def _refusal(reason: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
