"""WriteTxnMarkers: v1-2.

Behaviour
- Ends a producer's transaction in the given partitions regardless of its coordinator, so that an
  administrator can end a hanging transaction.
- Partitions without an open transaction are skipped without an error. An epoch older than the
  producer's own in that partition is INVALID_PRODUCER_EPOCH.
- It is accepted from this machine only, unless `transactions.accept_markers` is set: other clients
  get CLUSTER_AUTHORIZATION_FAILED, as from a Kafka whose ACLs restrict it to brokers.

Versions
- v2: the version of the transaction, which makes no difference here.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.kafka.embedded.resolve import find_topic
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import has_partition
from rockgate.gateway.kafka.transactions.markers import Markers
from rockgate.gateway.net.address import is_this_machine
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rockgate.protocol.kafka.records.control import Marker, MarkerType
from rockgate.store.api.topics import Topic, TopicLookup
from rockgate.store.errors import StoreError


class WriteTxnMarkers:
    """Writes markers."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        markers: Markers,
        stable_offsets: StableOffsets,
        durability: Durability,
        accepts_all: bool = False,
    ) -> None:
        """With `accepts_all` markers are taken from other machines too."""
        self._topics = topics
        self._markers = markers
        self._stable_offsets = stable_offsets
        self._durability = durability
        self._accepts_all = accepts_all

    def handle(
        self, request: WriteTxnMarkersRequest, call: Call
    ) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
        """Write each marker where it ends something."""
        peer = call.peer
        if not self._accepts_all and not is_this_machine(peer.local, peer.remote):
            raise RequestError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                "Transaction markers are accepted from this host only; set "
                "transactions.accept_markers to allow others.",
            )
        return in_slices(self._steps(request))

    def _steps(self, request: WriteTxnMarkersRequest) -> Steps[WriteTxnMarkersResponse]:
        response = WriteTxnMarkersResponse(markers=[])
        for each in request.markers:
            result = WritableTxnMarkerResult(producer_id=each.producer_id, topics=[])
            response.markers.append(result)
            for named in each.topics:
                partition_results: list[WritableTxnMarkerPartitionResult] = []
                result.topics.append(
                    WritableTxnMarkerTopicResult(name=named.name, partitions=partition_results)
                )
                for index in named.partition_indexes:
                    partition_results.append(
                        _result(index, self._write_one(each, named.name, index))
                    )
                    yield None
        return self._durability.after_changes(response)

    def refuse(self, request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
        """Reject every partition with the same error."""
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=each.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[_result(index, code) for index in topic.partition_indexes],
                        )
                        for topic in each.topics
                    ],
                )
                for each in request.markers
            ]
        )

    def _write_one(self, asked: WritableTxnMarker, name: str, index: int) -> ErrorCode:
        try:
            self._write(asked, find_topic(self._topics, name), index)
        except (RequestError, StoreError) as error:
            return explain(error)[0]
        return ErrorCode.NONE

    def _write(self, asked: WritableTxnMarker, topic: Topic | None, index: int) -> None:
        if not has_partition(topic, index):
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Partition does not exist.")
        if self._stable_offsets.first_of(topic.id, index, asked.producer_id) is None:
            return
        self._markers.check_epoch((topic.id, index), asked.producer_id, asked.producer_epoch)
        kind = MarkerType.COMMIT if asked.transaction_result else MarkerType.ABORT
        marker = Marker(kind, asked.producer_id, asked.producer_epoch, asked.coordinator_epoch)
        self._markers.append(marker, [(topic.id, index)], ())


def _result(index: int, code: ErrorCode) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
