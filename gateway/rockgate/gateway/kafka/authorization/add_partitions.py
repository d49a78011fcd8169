"""The guard of AddPartitionsToTxn: all partitions of a request are added, or none.

Clients (before v4) need WRITE on the transactional id and on every topic. If one is refused or
unknown, the others are OPERATION_NOT_ATTEMPTED. Newer versions are of brokers, and need
CLUSTER_ACTION.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rockgate.gateway.kafka.authorization.asking import Asking
from rockgate.gateway.kafka.authorization.checks import (
    Check,
    before,
    on_cluster,
    on_transaction,
    since,
)
from rockgate.gateway.kafka.authorization.guards import STEP_COUNT, Context, Guard, refuse_whole
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.handler import AnyHandler, Call
from rockgate.gateway.kafka.topics.catalog import has_partition
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)

OF_BROKERS: Final = 4
CHECKS: Final[Sequence[Check]] = (
    since(OF_BROKERS, on_cluster(AclOperation.CLUSTER_ACTION)),
    before(OF_BROKERS, on_transaction(AclOperation.WRITE, "v3_and_below_transactional_id")),
)


class AddPartitionsGuard(Guard):
    """Lets a request through if all of it is allowed."""

    def __init__(self, handler: AnyHandler, context: Context) -> None:
        super().__init__(handler, context, CHECKS)

    def handle(self, request: Any, call: Call) -> Any:
        """The handler's response, or a refusal of everything."""
        asking = self._context.asking(request, call)
        refuse_whole(self._checks, asking)
        if call.version >= OF_BROKERS:
            return self._handler.handle(request, call)
        return in_slices(self._steps(asking, request, call))

    def _steps(self, asking: Asking, request: Any, call: Call) -> Steps[Any]:
        topics: list[AddPartitionsToTxnTopic] = request.v3_and_below_topics
        codes: list[ErrorCode | None] = []
        for at, topic in enumerate(topics):
            codes.append(asking.refusal(AclOperation.WRITE, AclResourceType.TOPIC, topic.name))
            if at % STEP_COUNT == STEP_COUNT - 1:
                yield None
        if not any(codes):
            return self._handler.handle(request, call)
        results: list[AddPartitionsToTxnTopicResult] = []
        for at, (topic, code) in enumerate(zip(topics, codes, strict=True)):
            results.append(_not_added(asking, topic, code))
            if at % STEP_COUNT == STEP_COUNT - 1:
                yield None
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def _not_added(
    asking: Asking, topic: AddPartitionsToTxnTopic, code: ErrorCode | None
) -> AddPartitionsToTxnTopicResult:
    found = asking.catalog.find(topic.name) if code is None else None
    return AddPartitionsToTxnTopicResult(
        name=topic.name,
        results_by_partition=[
            AddPartitionsToTxnPartitionResult(
                partition_index=index,
                partition_error_code=code
                or (
                    ErrorCode.OPERATION_NOT_ATTEMPTED
                    if has_partition(found, index)
                    else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                ),
            )
            for index in topic.partitions
        ],
    )
