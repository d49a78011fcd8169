"""DescribeClientQuotas: v0-1.

Behaviour
- Every entity that has quotas and matches all components: the exact name (0), the default (1), or
  any of that type (2). `strict` leaves out entities with parts that no component names; without
  components it leaves out all.
- An unknown type is UNSUPPORTED_VERSION; an unknown match, a type twice, a name where none belongs
  or none where one does, and an address beside a user or client id are INVALID_REQUEST.

Versions
- v1: flexible.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from enum import IntEnum

from rockgate.gateway.kafka.quotas.entities import IP, TYPES, Entity, refuse
from rockgate.gateway.kafka.quotas.stored import StoredQuotas
from rockgate.gateway.kafka.request.chunked import Slicing
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class Match(IntEnum):
    """How a component matches its part of an entity."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class DescribeClientQuotas:
    """Describes quotas."""

    def __init__(self, quotas: StoredQuotas) -> None:
        self._quotas = quotas
        self._slicing = Slicing(DescribeClientQuotasResponse, EntryData)

    def handle(
        self, request: DescribeClientQuotasRequest, call: Call
    ) -> DescribeClientQuotasResponse | Awaitable[DescribeClientQuotasResponse]:
        """Describe matching entities, in slices if there are many."""
        try:
            wanted = _read(request.components)
        except RequestError as error:
            return DescribeClientQuotasResponse(
                error_code=error.code, error_message=error.reason, entries=None
            )
        return self._slicing.work(
            list(self._quotas.items()),
            lambda: Matching(wanted, request.strict),
            lambda entries: DescribeClientQuotasResponse(error_message=None, entries=entries),
            call.version,
        )

    def refuse(
        self, request: DescribeClientQuotasRequest, code: ErrorCode
    ) -> DescribeClientQuotasResponse:
        """An error for the whole request."""
        return DescribeClientQuotasResponse(
            error_code=code, error_message=code.meaning, entries=None
        )


class Matching:
    """A slice of entities, of which the matching ones are returned."""

    def __init__(self, wanted: Mapping[str, ComponentData], is_strict: bool) -> None:
        self._wanted = wanted
        self._is_strict = is_strict
        self._results: list[EntryData] = []

    def take(self, found: tuple[Entity, Mapping[str, float]], /) -> int:
        """Describe an entity, if it matches."""
        if _is_matched(dict(found[0]), self._wanted, self._is_strict):
            self._results.append(_entry(found))
        return 0

    def finish(self) -> Sequence[EntryData]:
        """Return the matching ones."""
        return self._results


def _read(components: Sequence[ComponentData]) -> Mapping[str, ComponentData]:
    found: dict[str, ComponentData] = {}
    for each in components:
        if not each.entity_type:
            raise refuse("A filter component requires an entity type.")
        if each.entity_type not in TYPES:
            raise RequestError(
                ErrorCode.UNSUPPORTED_VERSION, f"Unknown entity type {quoted(each.entity_type)}."
            )
        if each.entity_type in found:
            raise refuse(f"Entity type {each.entity_type} appears more than once in the filter.")
        if each.match_type not in tuple(Match):
            raise refuse(f"Unknown match type {each.match_type}.")
        if (each.match_type == Match.EXACT) != (each.match is not None):
            raise refuse("A name must be set for an exact match, and only then.")
        found[each.entity_type] = each
    if IP in found and len(found) > 1:
        raise refuse("Entity type ip cannot be combined with user or client-id.")
    return found


def _is_matched(
    entity: Mapping[str, str | None], wanted: Mapping[str, ComponentData], is_strict: bool
) -> bool:
    if is_strict and len(entity) != len(wanted):
        return False
    for type_, component in wanted.items():
        if type_ not in entity:
            return False
        # The name of an exact match is never null, and that of the default is.
        if component.match_type != Match.ANY and entity[type_] != component.match:
            return False
    return True


def _entry(found: tuple[Entity, Mapping[str, float]]) -> EntryData:
    entity, quotas = found
    return EntryData(
        entity=[EntityData(entity_type=type_, entity_name=name) for type_, name in entity],
        values=[ValueData(key=quota, value=value) for quota, value in sorted(quotas.items())],
    )
