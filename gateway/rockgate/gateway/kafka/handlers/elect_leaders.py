"""ElectLeaders: v0-2.

Behaviour
- Every partition is led by this node, its only replica, so no election is needed, clean or not:
  ELECTION_NOT_NEEDED for each requested partition. A request for all (null) returns every topic
  without a partition, as Kafka leaves out those that need nothing.
- An unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION.
- An unknown kind of election is INVALID_REQUEST for the whole request.

Versions
- v1: kinds of elections, a top-level error.  v2: flexible.

Departs from Kafka
- A partition that is named twice is listed once.
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Each, Slicing
from rockgate.gateway.kafka.request.dedup import merged
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, has_partition
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_KINDS = (0, 1)


class ElectLeaders:
    """Answers that the preferred leader already leads."""

    def __init__(self, catalog: TopicCatalog) -> None:
        self._catalog = catalog
        self._slicing = Slicing(ElectLeadersResponse, ReplicaElectionResult)

    def handle(
        self, request: ElectLeadersRequest, call: Call
    ) -> ElectLeadersResponse | Awaitable[ElectLeadersResponse]:
        """Answer for each partition, in slices if there are many."""
        # An empty list is never rejected, whatever kind it asks for.
        if request.election_type not in _KINDS and request.topic_partitions != []:
            reason = f"Unknown election type {request.election_type}."
            return _refused(request, ErrorCode.INVALID_REQUEST, reason)
        return self._slicing.work(
            self._asked(request),
            lambda: Each(self._elect),
            lambda results: ElectLeadersResponse(replica_election_results=results),
            call.version,
        )

    def refuse(self, request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
        """The same error for every partition, and of the whole."""
        return _refused(request, code, code.meaning)

    def _asked(self, request: ElectLeadersRequest) -> Iterable[tuple[str, list[int]]]:
        if request.topic_partitions is None:
            return ((names.to_kafka(topic.name), []) for topic in self._catalog)
        return _merged(request).items()

    def _elect(self, asked: tuple[str, list[int]]) -> ReplicaElectionResult:
        name, partitions = asked
        topic = self._catalog.find(name)
        needless, unknown = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _result(
            name,
            ((index, needless if has_partition(topic, index) else unknown) for index in partitions),
        )


def _merged(request: ElectLeadersRequest) -> dict[str, list[int]]:
    return merged((each.topic, each.partitions) for each in request.topic_partitions or ())


def _result(
    name: str, codes: Iterable[tuple[int, ErrorCode]], reason: str | None = None
) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=name,
        partition_result=[
            PartitionResult(
                partition_id=index, error_code=code, error_message=reason or code.meaning
            )
            for index, code in codes
        ],
    )


def _refused(request: ElectLeadersRequest, code: ErrorCode, reason: str) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            _result(name, ((index, code) for index in partitions), reason)
            for name, partitions in _merged(request).items()
        ],
    )
