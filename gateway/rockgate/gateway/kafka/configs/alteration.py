"""A request that changes configs, from its resources to its response.

AlterConfigs and IncrementalAlterConfigs differ only in the configs that result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Generic, Protocol, TypeVar

from rockgate.gateway.kafka.configs.resources import (
    KEY,
    Alterable,
    Key,
    NamedConfig,
    Resource,
    Resources,
)
from rockgate.gateway.kafka.request.chunked import Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.kafka.topics.catalog import NO_REFUSALS, Refusal, Refusals
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.schema import Encoded

Asked = TypeVar("Asked", bound=Resource)
Result = TypeVar("Result")
Response = TypeVar("Response")
A = TypeVar("A", covariant=True)
Plan = Callable[[Resources, Mapping[str, str], Asked], Mapping[str, str]]
"""Returns the configs that a resource will have, from those it has; raises RequestError."""
Answer = Callable[[Asked, ErrorCode, str | None], Result]


class ConfigsRequest(Protocol[A]):
    """The request of either API."""

    @property
    def resources(self) -> Sequence[A]:
        """The resources to alter."""

    @property
    def validate_only(self) -> bool:
        """Whether it is only validated."""


class ConfigRequests(Generic[Asked, Result, Response]):
    """Alters configs for one API, slice by slice."""

    def __init__(
        self,
        *,
        alterable: Alterable,
        durability: Durable,
        response: type[Response],
        result: type[Result],
        plan: Plan[Asked],
    ) -> None:
        self._alterable = alterable
        self._durability = durability
        self._response: Callable[..., Response] = response
        self._result: Callable[..., Result] = result
        self._plan = plan
        self._slicing = Slicing(response, result, is_changing=True)

    def handle(self, request: ConfigsRequest[Asked], call: Call) -> Response | Awaitable[Response]:
        """Change configs, or only validate the changes."""
        return in_slices(self._steps(request, call))

    def _steps(self, request: ConfigsRequest[Asked], call: Call) -> Steps[Response]:
        asked, repeated = yield from once_in_steps(request.resources, KEY)
        if (learning := self._alterable.learn(asked)) is not None:
            yield learning

        def begin() -> Alteration[Asked, Result]:
            return Alteration(
                alterable=self._alterable,
                plan=self._plan,
                answer=self._answer,
                repeated=repeated,
                is_dry=request.validate_only,
            )

        def respond(responses: list[Result | Encoded]) -> Response | Awaitable[Response]:
            response = self._response(responses=responses)
            return response if request.validate_only else self._durability.after_changes(response)

        return self._slicing.work(asked, begin, respond, call.version)

    def refuse(self, request: ConfigsRequest[Asked], code: ErrorCode) -> Response:
        """Reject every resource with the same error."""
        return self._response(
            responses=[self._answer(asked, code, code.meaning) for asked in request.resources]
        )

    def _answer(self, asked: Asked, code: ErrorCode, reason: str | None) -> Result:
        return self._result(
            error_code=code,
            error_message=reason,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )


class Alteration(Generic[Asked, Result]):
    """A slice of resources to be altered."""

    def __init__(
        self,
        *,
        alterable: Alterable,
        plan: Plan[Asked],
        answer: Answer[Asked, Result],
        repeated: AbstractSet[Key],
        is_dry: bool,
    ) -> None:
        self._alterable = alterable
        self._plan = plan
        self._answer = answer
        self._repeated = repeated
        self._is_dry = is_dry
        # Not the errors themselves: an error references the frame that stores it, which is a cycle.
        self._outcomes: list[tuple[Asked, tuple[ErrorCode, str] | None]] = []
        self._planned: dict[int, tuple[Resources, dict[str, Mapping[str, str]]]] = {}

    def take(self, asked: Asked, /) -> int:
        """Check the configs that a resource would have."""
        name = asked.resource_name
        try:
            if KEY(asked) in self._repeated:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, "Resource appears more than once in the request."
                )
            resources = self._alterable.of(asked)
            planned = self._planned_for(resources, asked)
        except RequestError as error:
            self._outcomes.append((asked, (error.code, error.reason)))
            return 0
        self._planned.setdefault(asked.resource_type, (resources, {}))[1][name] = planned
        self._outcomes.append((asked, None))
        return resources.cost(name)

    def _planned_for(self, resources: Resources, asked: Asked) -> Mapping[str, str]:
        try:
            config = resources.config(asked.resource_name)
        except RequestError as missing:
            if missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # Kafka reports an invalid config first, and an unknown topic after that.
                self._plan(resources, {}, asked)
            raise
        _check_once(asked.configs)
        return self._plan(resources, config, asked)

    def finish(self) -> Now[Sequence[Result]]:
        """Alter all that passed the check."""
        refusals: dict[int, Refusals] = {}
        waiting: dict[int, Awaitable[Refusals]] = {}
        for type_, (resources, configs) in () if self._is_dry else self._planned.items():
            try:
                outcome = resources.put(configs)
            except RequestError as error:
                outcome = dict.fromkeys(configs, Refusal(*explain(error)))
            if isinstance(outcome, Awaitable):
                waiting[type_] = outcome
            else:
                refusals[type_] = outcome
        return self._finish_after(refusals, waiting) if waiting else self._answered(refusals)

    async def _finish_after(
        self, refusals: dict[int, Refusals], waiting: Mapping[int, Awaitable[Refusals]]
    ) -> Sequence[Result]:
        for type_, outcome in waiting.items():
            refusals[type_] = await outcome
        return self._answered(refusals)

    def _answered(self, refusals: Mapping[int, Refusals]) -> Sequence[Result]:
        done: tuple[ErrorCode, None] = (ErrorCode.NONE, None)
        return [
            self._answer(
                asked,
                *refusals.get(asked.resource_type, NO_REFUSALS).get(asked.resource_name, done),
            )
            if refused is None
            else self._answer(asked, *refused)
            for asked, refused in self._outcomes
        ]


def _check_once(configs: Iterable[NamedConfig]) -> None:
    counts = Counter(config.name for config in configs)
    for name, count in counts.items():
        if count > 1:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"Config {name[:80]!r} appears more than once in the request.",
            )
