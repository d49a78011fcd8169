"""DeleteTopics: v1-6.

Behaviour
- By name or, from v6, by id; each topic succeeds or fails independently. One that is named twice,
  by whatever it is named, is INVALID_REQUEST, as is one with both a name and an id or with neither.
- A topic is deleted at once with all its records, and its name can be reused: a topic created with
  it is a different one, with a different id. Reads and writes of other topics are not affected.
- The server's internal topics are TOPIC_AUTHORIZATION_FAILED.

Versions
- v4: flexible.  v5: a message.  v6: ids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from rockgate.gateway.kafka.quotas.mutations import MutationQuota
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.kafka.topics.catalog import (
    NO_REFUSALS,
    Refusal,
    Refusals,
    TopicCatalog,
    TopicView,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rockgate.protocol.kafka.schema import ZERO_UUID, Encoded

IDS_SINCE = 6
STRICT_SINCE = 5
DELETION_COST = 8
_PIECE_COUNT = 500
_PARTITIONS_PER_COST = 8
Key: TypeAlias = tuple[str | None, bytes]
KEY: Callable[[DeleteTopicState], Key] = attrgetter("name", "topic_id")
NAME: Callable[[DeleteTopicState], str | None] = attrgetter("name")


class DeleteTopics:
    """Deletes topics."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        durability: Durable,
        throttling: MutationQuota,
    ) -> None:
        self._throttling = throttling
        self._catalog = catalog
        self._durability = durability
        self._slicing = Slicing(DeleteTopicsResponse, DeletableTopicResult, is_changing=True)

    def handle(
        self, request: DeleteTopicsRequest, call: Call
    ) -> DeleteTopicsResponse | Awaitable[DeleteTopicsResponse]:
        """Delete the topics that exist."""
        return in_slices(self._steps(request, call))

    def _steps(self, request: DeleteTopicsRequest, call: Call) -> Steps[DeleteTopicsResponse]:
        asked, repeated = yield from once_in_steps(_asked(request, call.version), KEY)
        if (learning := self._catalog.learn(map(NAME, asked))) is not None:
            yield learning
        repeated |= yield from self._named_both_ways(asked)

        def begin() -> Deleting:
            return Deleting(self, repeated, call)

        def respond(
            responses: list[DeletableTopicResult | Encoded],
        ) -> DeleteTopicsResponse | Awaitable[DeleteTopicsResponse]:
            return self._durability.after_changes(DeleteTopicsResponse(responses=responses))

        return self._slicing.work(asked, begin, respond, call.version)

    def refuse(self, request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
        """Reject every topic with the same error."""
        asked = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
        return DeleteTopicsResponse(
            responses=[_refused(each, code, code.meaning) for each in asked]
        )

    # Called by slices

    def find(self, asked: DeleteTopicState, repeated: AbstractSet[Key]) -> TopicView:
        """The topic to delete, or RequestError."""
        if asked.name is not None and asked.topic_id != ZERO_UUID:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "Topic name and topic id must not both be set."
            )
        if asked.name is None and asked.topic_id == ZERO_UUID:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "Either topic name or topic id must be set."
            )
        if KEY(asked) in repeated:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "Topic appears more than once in the request."
            )
        if asked.name is None:
            topic = self._catalog.find_id(asked.topic_id)
            if topic is None:
                raise RequestError(ErrorCode.UNKNOWN_TOPIC_ID, "Topic id does not exist.")
        else:
            topic = self._catalog.find(asked.name)
            if topic is None:
                raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topic does not exist.")
        if topic.is_internal:
            raise RequestError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Topic '{topic.name}' is an internal topic."
            )
        return topic

    def charge(self, call: Call, count: int) -> None:
        """Count partitions to be deleted; RequestError if the client's quota is used up."""
        self._throttling.take_partitions(call, count, is_strict=call.version >= STRICT_SINCE)

    def delete(self, names: Sequence[str]) -> Now[Refusals]:
        """Delete existing topics."""
        return self._catalog.delete(names)

    def _named_both_ways(
        self, asked: Collection[DeleteTopicState]
    ) -> Generator[None, None, AbstractSet[Key]]:
        """Topics given by name and by id: the names, and the ids."""
        ids: set[bytes] = set()
        left = iter(asked)
        while some := list(islice(left, _PIECE_COUNT)):
            ids.update(each.topic_id for each in some if each.name is None)
            yield
        if not ids:
            return frozenset()
        found: set[Key] = set()
        for each in asked:
            topic = self._catalog.find(each.name) if each.name is not None else None
            if topic is not None and topic.id in ids:
                found |= {(each.name, ZERO_UUID), (None, topic.id)}
            yield
        return found


class Deletable(NamedTuple):
    """A topic to delete."""

    asked: DeleteTopicState
    name: str
    id: bytes

    def answer(self, refusal: Refusal | None) -> DeletableTopicResult:
        """Its result."""
        if refusal is not None:
            return _refused(self.asked, *refusal)
        return DeletableTopicResult(name=self.name, topic_id=self.id)


class Deleting:
    """A slice of topics to be deleted."""

    def __init__(self, handler: DeleteTopics, repeated: AbstractSet[Key], call: Call) -> None:
        self._handler = handler
        self._call = call
        self._repeated = repeated
        self._outcomes: list[Deletable | DeletableTopicResult] = []

    def take(self, asked: DeleteTopicState, /) -> int:
        """Find a topic."""
        try:
            topic = self._handler.find(asked, self._repeated)
            self._handler.charge(self._call, topic.queue_count)
        except RequestError as error:
            self._outcomes.append(_refused(asked, error.code, error.reason))
            return 0
        self._outcomes.append(Deletable(asked, names.to_kafka(topic.name), topic.id))
        return DELETION_COST + topic.queue_count // _PARTITIONS_PER_COST

    def finish(self) -> Now[Sequence[DeletableTopicResult]]:
        """Delete all that were found."""
        found = [each.name for each in self._outcomes if isinstance(each, Deletable)]
        refusals = self._handler.delete(found) if found else NO_REFUSALS
        if isinstance(refusals, Awaitable):
            return self._finish_after(refusals)
        return self._answered(refusals)

    async def _finish_after(self, refusals: Awaitable[Refusals]) -> Sequence[DeletableTopicResult]:
        return self._answered(await refusals)

    def _answered(self, refusals: Refusals) -> Sequence[DeletableTopicResult]:
        return [
            each.answer(refusals.get(each.name)) if isinstance(each, Deletable) else each
            for each in self._outcomes
        ]


def _asked(request: DeleteTopicsRequest, version: int) -> Sequence[DeleteTopicState]:
    if version >= IDS_SINCE:
        return request.topics
    return [DeleteTopicState(name=name) for name in request.topic_names]


def _refused(asked: DeleteTopicState, code: ErrorCode, reason: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=asked.name, topic_id=asked.topic_id, error_code=code, error_message=reason
    )
