"""AlterClientQuotas: set or remove quotas of users, client ids and addresses."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Encoded,
    Float64,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class EntityData:
    """One part of an entity; a null name is the default."""

    entity_type: str = field(String)
    entity_name: str | None = field(NullableString)


@struct
class OpData:
    """A quota to set, or to remove."""

    key: str = field(String)
    value: float = field(Float64)
    remove: bool = field(Bool)


@struct
class EntryData:
    """An entity and what to change."""

    entity: list[EntityData] = field(Array(EntityData))
    ops: list[OpData] = field(Array(OpData))


@message(key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """Quotas to change; `validate_only` changes nothing."""

    entries: list[EntryData] = field(Array(EntryData))
    validate_only: bool = field(Bool)


@struct
class EntryResult:
    """Whether one entity was changed."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    entity: list[EntityData] = field(Array(EntityData))


@message(key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """The outcome for each entity."""

    throttle_time_ms: int = field(Int32)
    entries: list[EntryResult | Encoded] = field(Array(EntryResult, encoded=True))
