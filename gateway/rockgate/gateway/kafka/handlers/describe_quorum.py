"""DescribeQuorum: v0-2.

Behaviour
- The quorum of the metadata log, `__cluster_metadata`-0, is this node: leader and only voter, as
  far as the commit log goes, since the start's epoch.
- A request for anything else, or for more, is UNKNOWN_TOPIC_OR_PARTITION for all of it; one of
  more than NAMED_MAX topics and partitions is INVALID_REQUEST as a whole.

Versions
- v1: times of replicas.  v2: directories and addresses.

Departs from Kafka
- Metadata is part of the commit log, so the high watermark is a position in it rather than a count
  of metadata records.
"""

from __future__ import annotations

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    PartitionQuorum,
    ReplicaState,
    TopicData,
    TopicQuorum,
)
from rockgate.store.api.clock import Clock
from rockgate.store.api.log import Epochs, Log

METADATA = "__cluster_metadata"
LISTENER = "PLAINTEXT"
NAMED_MAX = 1_000
_ALL = [TopicData(topic_name=METADATA, partitions=[PartitionData(partition_index=0)])]


class DescribeQuorum:
    """Describes a quorum of one."""

    def __init__(self, *, node_id: int, log: Log, epochs: Epochs, clock: Clock) -> None:
        self._node_id = node_id
        self._log = log
        self._epochs = epochs
        self._clock = clock

    def handle(self, request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
        """Describe this node."""
        named_count = len(request.topics)
        if named_count <= NAMED_MAX:
            named_count += sum(len(topic.partitions) for topic in request.topics)
        if named_count > NAMED_MAX:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"Exactly one quorum partition can be described; got {named_count}.",
            )
        if request.topics != _ALL:
            return DescribeQuorumResponse(topics=_unknown(request))
        address = call.peer.advertised
        listener = Listener(name=LISTENER, host=address.host, port=address.port)
        return DescribeQuorumResponse(
            topics=[TopicQuorum(topic_name=METADATA, partitions=[self._quorum()])],
            nodes=[Node(node_id=self._node_id, listeners=[listener])],
        )

    def refuse(self, request: DescribeQuorumRequest, code: ErrorCode) -> DescribeQuorumResponse:
        """An error for the whole request."""
        return DescribeQuorumResponse(error_code=code, error_message=code.meaning)

    def _quorum(self) -> PartitionQuorum:
        now_ms = self._clock.now_ms()
        voter = ReplicaState(
            replica_id=self._node_id,
            log_end_offset=self._log.end,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )
        return PartitionQuorum(
            leader_id=self._node_id,
            leader_epoch=self._epochs.current,
            high_watermark=self._log.end,
            current_voters=[voter],
        )


def _unknown(request: DescribeQuorumRequest) -> list[TopicQuorum]:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return [
        TopicQuorum(
            topic_name=topic.topic_name,
            partitions=[
                PartitionQuorum(
                    partition_index=each.partition_index,
                    error_code=code,
                    error_message=code.meaning,
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
