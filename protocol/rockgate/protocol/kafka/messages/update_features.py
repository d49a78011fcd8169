"""UpdateFeatures: raise or lower the level of cluster features.

`upgrade_type` 1 raises, 2 lowers where that is safe, 3 lowers even if it is unsafe. From v2 the
response has no results for single features.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class FeatureUpdateKey:
    """A feature and its new level; 0 removes it."""

    feature: str = field(String)
    max_version_level: int = field(Int16)
    allow_downgrade: bool = field(Bool, "0")
    upgrade_type: int = field(Int8, "1+", default=1)


@message(key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """Features to change; `validate_only` changes nothing."""

    timeout_ms: int = field(Int32, default=60000)
    feature_updates: list[FeatureUpdateKey] = field(Array(FeatureUpdateKey))
    validate_only: bool = field(Bool, "1+")


@struct
class UpdatableFeatureResult:
    """Whether one feature was changed."""

    feature: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)


@message(key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """The outcome, up to v1 for each feature."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    results: list[UpdatableFeatureResult] = field(Array(UpdatableFeatureResult), "0-1")
