"""AlterClientQuotas: v0-1.

Behaviour
- Quotas of users, client ids and addresses are set and removed; docs/reference/quotas.md lists
  them and describes throttling.
- Each entity succeeds or fails independently. An invalid entity or quota is
  INVALID_REQUEST, and so is an entity, or a quota of it, that is repeated.
- Removing a quota that is not set, or not known, succeeds.
- `validate_only` validates and answers without changing anything.

Versions
- v1: flexible.

Departs from Kafka
- Addresses are literal: host names are not resolved.
- A quota that is not a number is rejected, and so is a byte rate below 100 bytes per second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from rockgate.gateway.kafka.quotas.entities import Entity, check_quota, read_entity, refuse
from rockgate.gateway.kafka.quotas.stored import StoredQuotas
from rockgate.gateway.kafka.request.chunked import Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    EntryResult,
)
from rockgate.protocol.kafka.schema import Encoded
from rockgate.store.errors import StoreError

CHANGE_COST = 5
Given = tuple[tuple[str, str | None], ...]


class AlterClientQuotas:
    """Sets quotas."""

    def __init__(self, *, quotas: StoredQuotas, durability: Durability) -> None:
        self._quotas = quotas
        self._durability = durability
        self._slicing = Slicing(AlterClientQuotasResponse, EntryResult, is_changing=True)

    def handle(
        self, request: AlterClientQuotasRequest, call: Call
    ) -> AlterClientQuotasResponse | Awaitable[AlterClientQuotasResponse]:
        """Set quotas, or only validate the changes."""
        return in_slices(self._steps(request, call))

    def _steps(
        self, request: AlterClientQuotasRequest, call: Call
    ) -> Steps[AlterClientQuotasResponse]:
        asked, repeated = yield from once_in_steps(request.entries, _given)

        def begin() -> QuotaSetting:
            return QuotaSetting(self._quotas, repeated, is_dry=request.validate_only)

        def respond(
            entries: list[EntryResult | Encoded],
        ) -> AlterClientQuotasResponse | Awaitable[AlterClientQuotasResponse]:
            response = AlterClientQuotasResponse(entries=entries)
            return response if request.validate_only else self._durability.after_changes(response)

        return self._slicing.work(asked, begin, respond, call.version)

    def refuse(
        self, request: AlterClientQuotasRequest, code: ErrorCode
    ) -> AlterClientQuotasResponse:
        """Reject every entity with the same error."""
        return AlterClientQuotasResponse(
            entries=[_result(asked, code, code.meaning) for asked in request.entries]
        )


class QuotaSetting:
    """A slice of entities whose quotas are to be set."""

    def __init__(self, quotas: StoredQuotas, repeated: AbstractSet[Given], *, is_dry: bool) -> None:
        self._quotas = quotas
        self._repeated = repeated
        self._is_dry = is_dry
        self._planned: dict[Entity, Mapping[str, float]] = {}
        # Not the errors themselves: an error references the frame that stores it, which is a cycle.
        self._outcomes: list[tuple[EntryData, tuple[ErrorCode, str] | None]] = []

    def take(self, asked: EntryData, /) -> int:
        """Check the quotas that an entity would have."""
        try:
            if _given(asked) in self._repeated:
                raise refuse("Entity appears more than once in the request.")
            entity = read_entity(_given(asked))
            if entity in self._planned:
                raise refuse("Entity appears more than once in the request.")
            self._planned[entity] = self._plan(entity, asked)
        except RequestError as error:
            self._outcomes.append((asked, (error.code, error.reason)))
            return 0
        self._outcomes.append((asked, None))
        return CHANGE_COST

    def _plan(self, entity: Entity, asked: EntryData) -> Mapping[str, float]:
        planned = dict(self._quotas.of(entity))
        if len({change.key for change in asked.ops}) < len(asked.ops):
            raise refuse("Quota appears more than once in an entry.")
        for change in asked.ops:
            if change.remove:
                planned.pop(change.key, None)
            else:
                check_quota(entity, change.key, change.value)
                planned[change.key] = change.value
        return planned

    def finish(self) -> Sequence[EntryResult]:
        """Set all that passed the check."""
        code, reason = ErrorCode.NONE, None
        if not self._is_dry:
            try:
                self._quotas.put(self._planned)
            except (RequestError, StoreError) as error:
                code, reason = explain(error)
        return [
            _result(asked, code, reason) if refused is None else _result(asked, *refused)
            for asked, refused in self._outcomes
        ]


def _given(asked: EntryData) -> Given:
    return tuple((part.entity_type, part.entity_name) for part in asked.entity)


def _result(asked: EntryData, code: ErrorCode, reason: str | None) -> EntryResult:
    return EntryResult(error_code=code, error_message=reason, entity=asked.entity)
