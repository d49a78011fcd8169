"""CreatePartitions: v0-3.

Behaviour
- Partitions are only added: a count that is not larger than the current one is
  INVALID_PARTITIONS.
- Each topic succeeds or fails independently; one that is named twice is INVALID_REQUEST, reported
  once.
- An assignment must name this node for each new partition, no more and no fewer of them.
- `validate_only` validates and answers without changing anything.

Versions
- v2: flexible.  v3: THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter

from rockgate.gateway.kafka.quotas.mutations import MutationQuota
from rockgate.gateway.kafka.request.chunked import Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.kafka.topics.catalog import NO_REFUSALS, Refusals, TopicCatalog, TopicView
from rockgate.gateway.kafka.topics.replicas import Replicas
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from rockgate.protocol.kafka.schema import Encoded

CHANGE_COST = 5
STRICT_SINCE = 3

NAME: Callable[[CreatePartitionsTopic], str] = attrgetter("name")


class CreatePartitions:
    """Adds partitions to topics."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        replicas: Replicas,
        durability: Durable,
        throttling: MutationQuota,
    ) -> None:
        self._throttling = throttling
        self._catalog = catalog
        self._replicas = replicas
        self._durability = durability
        self._slicing = Slicing(
            CreatePartitionsResponse, CreatePartitionsTopicResult, is_changing=True
        )

    def handle(
        self, request: CreatePartitionsRequest, call: Call
    ) -> CreatePartitionsResponse | Awaitable[CreatePartitionsResponse]:
        """Add partitions, or only validate the request."""
        return in_slices(self._steps(request, call))

    def _steps(
        self, request: CreatePartitionsRequest, call: Call
    ) -> Steps[CreatePartitionsResponse]:
        asked, repeated = yield from once_in_steps(request.topics, NAME)
        if (learning := self._catalog.learn(map(NAME, asked))) is not None:
            yield learning

        def begin() -> Growth:
            return Growth(self, repeated, call, is_dry=request.validate_only)

        def respond(
            results: list[CreatePartitionsTopicResult | Encoded],
        ) -> CreatePartitionsResponse | Awaitable[CreatePartitionsResponse]:
            response = CreatePartitionsResponse(results=results)
            return response if request.validate_only else self._durability.after_changes(response)

        return self._slicing.work(asked, begin, respond, call.version)

    def refuse(self, request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
        """Reject every topic with the same error."""
        return CreatePartitionsResponse(
            results=[_refused(topic.name, code, code.meaning) for topic in request.topics]
        )

    # Called by slices

    def plan(self, asked: CreatePartitionsTopic, planned_count: int) -> TopicView:
        """The topic to extend, or RequestError; `planned_count` partitions were planned before."""
        topic = self._catalog.find(asked.name)
        if topic is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topic does not exist.")
        if topic.is_internal:
            raise RequestError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Topic '{topic.name}' is an internal topic."
            )
        had, count = topic.queue_count, asked.count
        most = self._catalog.topic_partitions_max
        if not had < count <= most:
            raise RequestError(
                ErrorCode.INVALID_PARTITIONS,
                f"Partition count must be more than the topic's {had:,} and at most {most:,},"
                f" not {count:,}.",
            )
        if asked.assignments is not None:
            if len(asked.assignments) != count - had:
                raise RequestError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"Adding {count - had:,} partitions requires {count - had:,} assignments; "
                    f"got {len(asked.assignments):,}.",
                )
            self._replicas.check_assignment(each.broker_ids for each in asked.assignments)
        self._catalog.check_room(planned_count + count - had)
        return topic

    def charge(self, call: Call, count: int) -> None:
        """Count partitions to be created; RequestError if the client's quota is used up."""
        self._throttling.take_partitions(call, count, is_strict=call.version >= STRICT_SINCE)

    def grow(self, counts: Mapping[str, int]) -> Now[Refusals]:
        """Add partitions to topics."""
        return self._catalog.grow(counts)


class Growth:
    """A slice of topics to extend."""

    def __init__(
        self,
        handler: CreatePartitions,
        repeated: AbstractSet[str],
        call: Call,
        *,
        is_dry: bool,
    ) -> None:
        self._handler = handler
        self._call = call
        self._repeated = repeated
        self._is_dry = is_dry
        self._planned_count = 0
        self._grown: dict[str, int] = {}
        self._outcomes: list[str | CreatePartitionsTopicResult] = []

    def take(self, asked: CreatePartitionsTopic, /) -> int:
        """Check a topic."""
        try:
            if asked.name in self._repeated:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, "Topic appears more than once in the request."
                )
            topic = self._handler.plan(asked, self._planned_count)
            more = asked.count - topic.queue_count
            if not self._is_dry:
                self._handler.charge(self._call, more)
        except RequestError as error:
            self._outcomes.append(_refused(asked.name, error.code, error.reason))
            return 0
        self._grown[asked.name] = asked.count
        self._outcomes.append(asked.name)
        self._planned_count += more
        return CHANGE_COST + more

    def finish(self) -> Now[Sequence[CreatePartitionsTopicResult]]:
        """Extend all that passed the check."""
        refusals: Now[Refusals] = NO_REFUSALS
        if self._grown and not self._is_dry:
            refusals = self._handler.grow(self._grown)
        if isinstance(refusals, Awaitable):
            return self._finish_after(refusals)
        return self._answered(refusals)

    async def _finish_after(
        self, refusals: Awaitable[Refusals]
    ) -> Sequence[CreatePartitionsTopicResult]:
        return self._answered(await refusals)

    def _answered(self, refusals: Refusals) -> Sequence[CreatePartitionsTopicResult]:
        return [
            _refused(each, *refusals.get(each, (ErrorCode.NONE, None)))
            if isinstance(each, str)
            else each
            for each in self._outcomes
        ]


def _refused(name: str, code: ErrorCode, reason: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=reason)
