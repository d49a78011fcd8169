"""CreateTopics: v2-7.

Behaviour
- Each topic succeeds or fails independently, with a message. A repeated name is not created:
  INVALID_REQUEST, reported once.
- Partitions by count (-1: the server's `topics.partitions`) or by an assignment of each to this
  node; with an assignment, count and replication factor must be -1.
- Replication factors -1 and 1 to 3 are taken, and one replica is made and answered;
  `topics.replication_strict` refuses what it cannot give.
- Configs are checked by the table of topic configs. The answer has all of them with their sources,
  for as many topics as a request is likely to have.
- `validate_only` validates and answers without changing anything.
- Ten thousand topics are created in slices; each slice is one entry of the log.

Versions
- v4: -1 stands for the server's default (taken in every version).  v5: flexible, partitions,
  replication factor and configs in the answer.  v6: THROTTLING_QUOTA_EXCEEDED.  v7: topic id.

Departs from Kafka
- `a.b` and `a_b` may both exist: they do not collide here.
- With validate_only, the topic id is zero.
- Up to three replicas are accepted, and one is created.
- The total number of partitions is limited (`topics.partitions_max`): POLICY_VIOLATION.
- Configs are returned for the first 10,000 topics of a request. Further ones have POLICY_VIOLATION
  as their `topic_config_error_code` and are still created: a response with a hundred thousand lists
  would exceed what clients accept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter

from rockgate.gateway.kafka.configs.checks import TOPICS, ConfigTable
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS, TopicConfig
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults, source_of
from rockgate.gateway.kafka.quotas.mutations import MutationQuota
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.topics.catalog import (
    NO_REFUSALS,
    NewTopic,
    Refusal,
    Refusals,
    TopicCatalog,
)
from rockgate.gateway.kafka.topics.replicas import REPLICATION_FACTOR, Replicas, check_numbering
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.schema import ZERO_UUID, Encoded, encode_part, join

CREATION_COST = 5
CONFIGS_SINCE = 5
CONFIG_LISTS_MAX = 10_000
STRICT_SINCE = 6
SERVER_S_CHOICE = -1
_CACHED_MAX = 64

NAME: Callable[[CreatableTopic], str] = attrgetter("name")


class CreateTopics:
    """Creates topics."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        replicas: Replicas,
        defaults: TopicDefaults,
        config: TopicsConfig,
        durability: Durable,
        throttling: MutationQuota,
        permitted: Permitted = UNCHECKED,
        known: ConfigTable[TopicConfig] = TOPICS,
    ) -> None:
        self._permitted = permitted
        self._known = known
        self._throttling = throttling
        self._catalog = catalog
        self._replicas = replicas
        self._partitions = config.partitions
        self._durability = durability
        self._configs = ConfigList(defaults)
        self._slicing = Slicing(CreateTopicsResponse, CreatableTopicResult, is_changing=True)

    def handle(
        self, request: CreateTopicsRequest, call: Call
    ) -> CreateTopicsResponse | Awaitable[CreateTopicsResponse]:
        """Create topics, or only validate the request."""
        return in_slices(self._steps(request, call))

    def _steps(self, request: CreateTopicsRequest, call: Call) -> Steps[CreateTopicsResponse]:
        asked, repeated = yield from once_in_steps(request.topics, NAME)
        if (learning := self._catalog.learn(map(NAME, asked))) is not None:
            yield learning
        lists = iter(range(CONFIG_LISTS_MAX))

        def begin() -> Creating:
            return Creating(self, repeated, call, lists, is_dry=request.validate_only)

        def respond(
            topics: list[CreatableTopicResult | Encoded],
        ) -> CreateTopicsResponse | Awaitable[CreateTopicsResponse]:
            response = CreateTopicsResponse(topics=topics)
            return response if request.validate_only else self._durability.after_changes(response)

        return self._slicing.work(asked, begin, respond, call.version)

    def refuse(self, request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
        """Reject every topic with the same error."""
        return CreateTopicsResponse(
            topics=[_refused(topic.name, code, code.meaning) for topic in request.topics]
        )

    # Called by slices

    def plan(self, asked: CreatableTopic, planned_count: int) -> NewTopic:
        """The topic to create, or RequestError; `planned_count` partitions were planned before."""
        name = asked.name
        if self._catalog.find(name) is not None:
            raise RequestError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {name!r} already exists.")
        names.check_new(name)
        count = self._partition_count(asked)
        self._catalog.check_room(planned_count + count)
        given = ((config.name, config.value) for config in asked.configs)
        return NewTopic(name=name, partition_count=count, config=self._known.read_all(given))

    def _partition_count(self, asked: CreatableTopic) -> int:
        count = asked.num_partitions
        if asked.assignments:
            if count != SERVER_S_CHOICE or asked.replication_factor != SERVER_S_CHOICE:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    "Partition count and replication factor must be -1 if replicas are assigned.",
                )
            check_numbering([each.partition_index for each in asked.assignments])
            self._replicas.check_assignment(each.broker_ids for each in asked.assignments)
            count = len(asked.assignments)
        elif count == SERVER_S_CHOICE:
            count = self._partitions
        most = self._catalog.topic_partitions_max
        if not 1 <= count <= most:
            raise RequestError(
                ErrorCode.INVALID_PARTITIONS,
                f"Partition count must be 1 to {most:,}, or -1 for the default of"
                f" {self._partitions:,}, not {count:,}.",
            )
        if not asked.assignments:
            self._replicas.check_factor(asked.replication_factor)
        return count

    def charge(self, call: Call, count: int) -> None:
        """Count partitions to be created; RequestError if the client's quota is used up."""
        self._throttling.take_partitions(call, count, is_strict=call.version >= STRICT_SINCE)

    def create(self, news: Sequence[NewTopic]) -> Now[Refusals]:
        """Create topics."""
        return self._catalog.create(news)

    def created(
        self, new: NewTopic, call: Call, lists: Iterator[int], *, is_dry: bool
    ) -> CreatableTopicResult:
        """The result for a topic that was created, or could be, with its configs.

        A client that may not describe them gets neither configs nor numbers.
        """
        version, type_ = call.version, AclResourceType.TOPIC
        topic = None if is_dry else self._catalog.find(new.name)
        configs: list[CreatableTopicConfigs | Encoded] = []
        code = ErrorCode.NONE
        topic_id = ZERO_UUID if topic is None else topic.id
        if not self._permitted.may(call.peer, AclOperation.DESCRIBE_CONFIGS, type_, new.name):
            return CreatableTopicResult(
                name=new.name,
                topic_id=topic_id,
                error_message=None,
                topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                configs=[],
            )
        if version >= CONFIGS_SINCE:
            if next(lists, None) is None:
                code = ErrorCode.POLICY_VIOLATION
            else:
                configs = [self._configs.of(new.config, version)]
        return CreatableTopicResult(
            name=new.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=new.partition_count,
            replication_factor=REPLICATION_FACTOR,
            topic_config_error_code=code,
            configs=configs,
        )


class Creating:
    """A slice of topics to be created."""

    def __init__(
        self,
        handler: CreateTopics,
        repeated: AbstractSet[str],
        call: Call,
        lists: Iterator[int],
        *,
        is_dry: bool,
    ) -> None:
        self._handler = handler
        self._repeated = repeated
        self._call = call
        self._lists = lists
        self._is_dry = is_dry
        self._planned_count = 0
        self._outcomes: list[NewTopic | CreatableTopicResult] = []

    def take(self, asked: CreatableTopic, /) -> int:
        """Check a topic."""
        try:
            if asked.name in self._repeated:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, "Topic appears more than once in the request."
                )
            new = self._handler.plan(asked, self._planned_count)
            if not self._is_dry:
                self._handler.charge(self._call, new.partition_count)
        except RequestError as error:
            self._outcomes.append(_refused(asked.name, error.code, error.reason))
            return 0
        self._planned_count += new.partition_count
        self._outcomes.append(new)
        return CREATION_COST + new.partition_count

    def finish(self) -> Now[Sequence[CreatableTopicResult]]:
        """Create all that passed the check."""
        news = [each for each in self._outcomes if isinstance(each, NewTopic)]
        refusals: Now[Refusals] = NO_REFUSALS
        if news and not self._is_dry:
            refusals = self._handler.create(news)
        if isinstance(refusals, Awaitable):
            return self._finish_after(refusals)
        return self._answered(refusals)

    async def _finish_after(self, refusals: Awaitable[Refusals]) -> Sequence[CreatableTopicResult]:
        return self._answered(await refusals)

    def _answered(self, refusals: Refusals) -> Sequence[CreatableTopicResult]:
        return [
            self._answer(each, refusals.get(each.name)) if isinstance(each, NewTopic) else each
            for each in self._outcomes
        ]

    def _answer(self, new: NewTopic, refusal: Refusal | None) -> CreatableTopicResult:
        if refusal is not None:
            return _refused(new.name, *refusal)
        return self._handler.created(new, self._call, self._lists, is_dry=self._is_dry)


class ConfigList:
    """All configs of a new topic, encoded; thousands of topics are created with the same few."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults
        self._cache: dict[tuple[int, frozenset[tuple[str, str]]], Encoded] = {}
        defaults.on_changed.append(self._cache.clear)

    def of(self, config: Mapping[str, str], version: int) -> Encoded:
        """The configs of a topic with these settings."""
        key = (version, frozenset(config.items()))
        encoded = self._cache.get(key)
        if encoded is None:
            if len(self._cache) >= _CACHED_MAX:
                self._cache.clear()
            encoded = self._cache[key] = self._encode(config, version)
        return encoded

    def _encode(self, config: Mapping[str, str], version: int) -> Encoded:
        return join(
            CreatableTopicConfigs,
            version,
            [
                encode_part(
                    CreateTopicsResponse,
                    CreatableTopicConfigs(
                        name=name,
                        value=self._defaults.text(config, name),
                        config_source=source_of(name, config, self._defaults),
                    ),
                    version,
                )
                for name in TOPIC_CONFIGS
            ],
        )


def _refused(name: str, code: ErrorCode, reason: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=reason, configs=[])
