"""ApiVersions: the APIs and versions of this server, requested before anything else.

A client that asks above the highest version gets the v0 response with UNSUPPORTED_VERSION and asks
again; the response header has no tagged fields in any version, so that it can always be read.
v3 names the client's software; v4 lets a feature start at level 0.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    """The client's software."""

    client_software_name: str = field(String, "3+")
    client_software_version: str = field(String, "3+")


@struct
class ApiVersion:
    """One API and the versions of it that are served."""

    api_key: int = field(Int16)
    min_version: int = field(Int16)
    max_version: int = field(Int16)


@struct
class SupportedFeatureKey:
    """A feature this server can run, and at which levels."""

    name: str = field(String)
    min_version: int = field(Int16)
    max_version: int = field(Int16)


@struct
class FinalizedFeatureKey:
    """A feature that is switched on, and at which levels."""

    name: str = field(String)
    max_version_level: int = field(Int16)
    min_version_level: int = field(Int16)


@message(key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    """The APIs served, and the features of the cluster."""

    error_code: int = field(Int16)
    api_keys: list[ApiVersion] = field(Array(ApiVersion))
    throttle_time_ms: int = field(Int32, "1+")
    supported_features: list[SupportedFeatureKey] = field(Array(SupportedFeatureKey), "3+", tag=0)
    finalized_features_epoch: int = field(Int64, "3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = field(Array(FinalizedFeatureKey), "3+", tag=2)
    zk_migration_ready: bool = field(Bool, "3+", tag=3)
