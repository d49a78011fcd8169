"""DescribeClientQuotas: the quotas of users, client ids and addresses.

`match_type` is 0 for the exact name in `match`, 1 for the default entity, 2 for any named one.
`strict` leaves out entities with further parts.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Encoded,
    Float64,
    Int8,
    Int16,
    Int32,
    Nullable,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class ComponentData:
    """One part of the entities to find."""

    entity_type: str = field(String)
    match_type: int = field(Int8)
    match: str | None = field(NullableString)


@message(key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """Which entities to describe."""

    components: list[ComponentData] = field(Array(ComponentData))
    strict: bool = field(Bool)


@struct
class EntityData:
    """One part of an entity; a null name is the default."""

    entity_type: str = field(String)
    entity_name: str | None = field(NullableString)


@struct
class ValueData:
    """A quota and its value."""

    key: str = field(String)
    value: float = field(Float64)


@struct
class EntryData:
    """An entity and its quotas."""

    entity: list[EntityData] = field(Array(EntityData))
    values: list[ValueData] = field(Array(ValueData))


@message(key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """The entities found."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    entries: list[EntryData | Encoded] | None = field(Nullable(Array(EntryData, encoded=True)))
