"""A request that changes configs, from what it asks to what it is answered.

AlterConfigs and IncrementalAlterConfigs differ in what shall be set, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from rockgate.gateway.kafka.configs.altering import KEY, Alterable, Altering, Asked, Plan, Result
from rockgate.gateway.kafka.request.chunked import Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.kafka.request.peer import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.schema import Encoded

Response = TypeVar("Response")
A = TypeVar("A", covariant=True)


class ConfigsRequest(Protocol[A]):
    """What either API asks."""

    @property
    def resources(self) -> Sequence[A]:
        """What shall be altered."""

    @property
    def validate_only(self) -> bool:
        """Whether it is only to be checked."""


class ConfigRequests(Generic[Asked, Result, Response]):
    """Does what requests of one API ask, slice by slice."""

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
        """Change configs, or only say whether they could be."""
        return in_slices(self._steps(request, call))

    def _steps(self, request: ConfigsRequest[Asked], call: Call) -> Steps[Response]:
        asked, repeated = yield from once_in_steps(request.resources, KEY)
        if (learning := self._alterable.learn(asked)) is not None:
            yield learning

        def begin() -> Altering[Asked, Result]:
            return Altering(
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
        """Say the same of every resource."""
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
