"""Guards: what a handler is wrapped in so that it sees only what the client may do.

A refusal of the whole request is raised as an error, and the handler builds the response. A guard
of items removes those that are refused from the request, calls the handler with the rest, and adds
them to its response; a request of which nothing is left does not reach the handler. Kafka also
returns refused items behind the others.

Many items are checked in slices, with other requests in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rockgate.gateway.kafka.authorization.asking import Asking
from rockgate.gateway.kafka.authorization.checks import Check
from rockgate.gateway.kafka.authorization.permissions import Permissions
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import AnyHandler, Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.protocol.kafka.errors import ErrorCode

STEP_COUNT: Final = 64
"""Items between two checks of the clock."""

Decide: TypeAlias = Callable[[Asking, Any], ErrorCode | None]
"""The error of an item, or None if the client may do what it asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What guards decide by."""

    permissions: Permissions
    catalog: TopicCatalog

    def asking(self, request: Any, call: Call) -> Asking:
        """What the client of a request may do."""
        return Asking(self.permissions, self.catalog, request, call)


def refuse_whole(checks: Sequence[Check], asking: Asking) -> None:
    """Raise the first refusal among checks of the whole request."""
    for check in checks:
        code = check(asking)
        if code is not None:
            raise RequestError(code, code.meaning)


class Guard:
    """Checks requests as a whole."""

    def __init__(self, handler: AnyHandler, context: Context, checks: Sequence[Check]) -> None:
        self._handler = handler
        self._context = context
        self._checks = checks

    def handle(self, request: Any, call: Call) -> Any:
        """The handler's response, if the client may ask for it."""
        refuse_whole(self._checks, self._context.asking(request, call))
        return self._handler.handle(request, call)

    def refuse(self, request: Any, code: ErrorCode) -> Any:
        """The handler's refusal."""
        return self._handler.refuse(request, code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The partitions of an item, each of which has an error in the result of a refusal."""

    field: str
    """The list, in the item."""
    refused: Callable[[Any, ErrorCode], Any]
    """The result of one of them."""
    results: str = "partitions"
    """The list of results, in the result of the item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list of a request whose items are decided one by one."""

    field: str
    """The list, in the request."""
    decide: Decide
    refused: Callable[[Any, ErrorCode], Any]
    """The result of an item that is refused, without its partitions."""
    results: str
    """The list of results, in the response."""
    partitions: Partitions | None = None
    before: tuple[int, str] | None = None
    """Requests before a version have another list in its place."""

    def refusing(
        self, refused: Iterable[tuple[Any, ErrorCode]], results: list[Any]
    ) -> Generator[None, None, None]:
        """Add the results of refused items, in steps."""
        of, done = self.partitions, 0
        for item, code in refused:
            result = self.refused(item, code)
            results.append(result)
            done += 1
            if of is not None:
                parts = getattr(result, of.results)
                for each in getattr(item, of.field):
                    parts.append(of.refused(each, code))
                    done += 1
                    if done % STEP_COUNT == 0:
                        yield
            if done % STEP_COUNT == 0:
                yield

    def field_of(self, version: int) -> str:
        """The list in a request of a version."""
        if self.before is not None and version < self.before[0]:
            return self.before[1]
        return self.field


class ItemsGuard(Guard):
    """Checks requests as a whole, then the items of one list."""

    def __init__(
        self,
        handler: AnyHandler,
        context: Context,
        checks: Sequence[Check],
        items: Items,
        response: type[Any],
    ) -> None:
        super().__init__(handler, context, checks)
        self._items = items
        self._response = response

    def handle(self, request: Any, call: Call) -> Any:
        """The handler's response about what is allowed, and errors for the rest."""
        asking = self._context.asking(request, call)
        refuse_whole(self._checks, asking)
        return in_slices(self._steps(asking, request, call))

    def _steps(self, asking: Asking, request: Any, call: Call) -> Steps[Any]:
        items, field = self._items, self._items.field_of(call.version)
        allowed: list[Any] = []
        refused: list[tuple[Any, ErrorCode]] = []
        for at, item in enumerate(getattr(request, field) or ()):
            code = items.decide(asking, item)
            if code is None:
                allowed.append(item)
            else:
                refused.append((item, code))
            if at % STEP_COUNT == STEP_COUNT - 1:
                yield None
        if not refused:
            return self._handler.handle(request, call)
        if allowed:
            setattr(request, field, allowed)
            response = self._handler.handle(request, call)
            if isinstance(response, Awaitable):
                response = yield response
        else:
            response = self._response()
        yield from items.refusing(refused, getattr(response, items.results))
        return response
