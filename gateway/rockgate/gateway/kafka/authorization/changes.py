"""Writes administrative changes to the audit: one line for each thing that a request changes.

Wrapped around the handlers of APIs that change topics, groups, configs and quotas, within their
guards: what was refused has its own line. APIs of users, grants and tokens write theirs themselves.
Whoever may do this may also do it often, so the lines of one request are bounded, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, TypeVar

from rockgate.gateway.kafka.configs.resources import ResourceType
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import AnyHandler, Call, Row
from rockgate.gateway.security.audit import ChangeAudit
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import Encoded, decode, encode

Services = TypeVar("Services")
LINES_MAX: Final = 200
"""Things of one request that are named; of more, the number is."""
CONFIGS_CHARS_MAX: Final = 500
OK: Final = "ok"
UNREAD: Final = "unread"
"""The outcome of a thing in a response that is so large that it was encoded in parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedChanges:
    """What a request of an API changes."""

    items: Callable[[Any], Sequence[Any]]
    """The things in a request."""
    results: str
    """The list of the response; things have the same order there, unless some were refused."""
    named: Callable[[Any], str]
    """The name of a thing in the request, or of its result."""
    details: Callable[[Any], str] = lambda item: ""
    """What is changed of a thing in the request."""

    def lines(self, request: Any, response: Any) -> Iterable[tuple[str, str]]:
        """What was changed, each with its outcome."""
        results = getattr(response, self.results)
        asked = self.items(request)
        if self.is_encoded(response):
            return ((self._described(each), UNREAD) for each in asked)
        known = {self.named(each): self._described(each) for each in islice(asked, LINES_MAX)}
        return ((known.get(self.named(each), self.named(each)), _outcome(each)) for each in results)

    def is_encoded(self, response: Any) -> bool:
        """Whether results of a response are encoded already."""
        return any(type(each) is Encoded for each in getattr(response, self.results))

    def _described(self, item: Any) -> str:
        details = self.details(item)
        return f"{self.named(item)} {details}" if details else self.named(item)


class OneGroup(AuditedChanges):
    """A request about one group."""

    def lines(self, request: Any, response: Any) -> Iterable[tuple[str, str]]:
        """The group, with the outcome of all."""
        return [(self.named(request), _outcome(response))]


class OfAll(AuditedChanges):
    """A request that succeeds or fails as a whole."""

    def lines(self, request: Any, response: Any) -> Iterable[tuple[str, str]]:
        """Every thing, with the outcome of all."""
        outcome = _outcome(response)
        return ((self._described(each), outcome) for each in self.items(request))


def _outcome(result: Any) -> str:
    """The error of a result, or the first of those in it."""
    code = getattr(result, "error_code", 0)
    if not code:
        parts = getattr(result, "partitions", ())
        code = next((each.error_code for each in islice(parts, LINES_MAX) if each.error_code), 0)
    return ErrorCode(code).name if code else OK


def _topic(item: Any) -> str:
    if isinstance(item, str):
        return f"TOPIC:{item}"
    return f"TOPIC:{item.name if item.name is not None else item.topic_id}"


def _group(item: Any) -> str:
    return f"GROUP:{item if isinstance(item, str) else item.group_id}"


def _resource(item: Any) -> str:
    try:
        type_ = ResourceType(item.resource_type).name
    except ValueError:
        type_ = str(item.resource_type)
    return f"{type_}:{item.resource_name}"


def _configs(item: Any) -> str:
    """The names of configs; a value may be long."""
    return ",".join(each.name for each in islice(item.configs, LINES_MAX))[:CONFIGS_CHARS_MAX]


def _entity(item: Any) -> str:
    parts = (f"{each.entity_type}={each.entity_name}" for each in item.entity)
    return f"QUOTA:{','.join(parts)}"


def _quotas(item: Any) -> str:
    return ",".join(each.key for each in islice(item.ops, LINES_MAX))[:CONFIGS_CHARS_MAX]


def _feature(item: Any) -> str:
    return f"FEATURE:{item.feature}"


_CONFIGS: Final = AuditedChanges(
    items=lambda request: request.resources, results="responses", named=_resource, details=_configs
)


def _of_topics(results: str) -> AuditedChanges:
    return AuditedChanges(items=lambda request: request.topics, results=results, named=_topic)


CHANGES: Final[Mapping[int, AuditedChanges]] = {
    ApiKey.CREATE_TOPICS: _of_topics("topics"),
    ApiKey.DELETE_TOPICS: AuditedChanges(
        items=lambda request: request.topics or request.topic_names,
        results="responses",
        named=_topic,
    ),
    ApiKey.CREATE_PARTITIONS: _of_topics("results"),
    ApiKey.DELETE_RECORDS: _of_topics("topics"),
    ApiKey.DELETE_GROUPS: AuditedChanges(
        items=lambda request: request.groups_names, results="results", named=_group
    ),
    ApiKey.OFFSET_DELETE: OneGroup(
        items=lambda request: (request,), results="topics", named=_group
    ),
    ApiKey.UPDATE_FEATURES: OfAll(
        items=lambda request: request.feature_updates,
        results="results",
        named=_feature,
        details=lambda update: f"level={update.max_version_level}",
    ),
    ApiKey.ALTER_CONFIGS: _CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _CONFIGS,
    ApiKey.ALTER_CLIENT_QUOTAS: AuditedChanges(
        items=lambda request: request.entries, results="entries", named=_entity, details=_quotas
    ),
}


class Audited:
    """A handler whose changes are written down."""

    def __init__(
        self, handler: AnyHandler, audit: ChangeAudit, api: ApiKey, changes: AuditedChanges
    ) -> None:
        self._handler = handler
        self._audit = audit
        self._api = api
        self._changes = changes

    def handle(self, request: Any, call: Call) -> Any:
        """The handler's response."""
        try:
            response = self._handler.handle(request, call)
        except RequestError as error:
            self._failed(request, call, error)
            raise
        if isinstance(response, Awaitable):
            return self._later(request, call, response)
        self._note(request, call, response)
        return response

    def refuse(self, request: Any, code: ErrorCode) -> Any:
        """The handler's refusal."""
        return self._handler.refuse(request, code)

    async def _later(self, request: Any, call: Call, pending: Awaitable[Any]) -> Any:
        try:
            response = await pending
        except RequestError as error:
            self._failed(request, call, error)
            raise
        self._note(request, call, response)
        return response

    def _note(self, request: Any, call: Call, response: Any) -> None:
        if getattr(request, "validate_only", False):
            return
        asked_count = len(self._changes.items(request))
        if asked_count <= LINES_MAX and self._changes.is_encoded(response):
            # A small one, which was interrupted.
            response = decode(type(response), call.version, encode(response, call.version))
        for what, outcome in islice(self._changes.lines(request, response), LINES_MAX):
            self._write(call, what, outcome)
        more = asked_count - LINES_MAX
        if more > 0:
            self._write(call, f"{more:,} more resources", UNREAD)

    def _failed(self, request: Any, call: Call, error: RequestError) -> None:
        """All of a request has failed."""
        if not getattr(request, "validate_only", False):
            asked = self._changes.items(request)
            what = self._changes.named(asked[0]) if len(asked) == 1 else f"{len(asked):,} resources"
            self._write(call, what, error.code.name)

    def _write(self, call: Call, what: str, outcome: str) -> None:
        peer = call.peer
        self._audit.changed(
            peer.principal, peer.remote.host, api=self._api.name, what=what, outcome=outcome
        )


def audited(rows: Sequence[Row[Services]], audit: ChangeAudit) -> tuple[Row[Services], ...]:
    """The table of handlers, with those that change something written down."""
    return tuple(
        replace(row, make=_auditing(row, audit, CHANGES[row.key])) if row.key in CHANGES else row
        for row in rows
    )


def _auditing(
    row: Row[Services], audit: ChangeAudit, changes: AuditedChanges
) -> Callable[[Services], AnyHandler]:
    make, key = row.make, row.key
    return lambda services: Audited(make(services), audit, ApiKey(key), changes)
