"""Our declarations say what Kafka's own schemas say.

The schemas are those that kafka-python ships. Fields are compared within the versions we declare.
"""

import re
from typing import Any

import pytest
from tests.protocol.kafka.kafka_python import broker_versions, its_schema
from tests.protocol.kafka.values import MESSAGES, version_id

from rockgate.protocol.kafka.api import APIS, ApiKey
from rockgate.protocol.kafka.connection import RequestHeader, ResponseHeader
from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from rockgate.protocol.kafka.schema import declaration_of
from rockgate.protocol.kafka.schema.declare import Field
from rockgate.protocol.kafka.schema.kinds import (
    ArrayOf,
    Blob,
    Fixed,
    Kind,
    OrNull,
    RecordData,
    Struct,
    Text,
)
from rockgate.protocol.kafka.versions import NO_VERSIONS, Versions

OTHERS = [
    RequestHeader,
    ResponseHeader,
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
]
SCHEMAS = {
    message: schema
    for message in [*MESSAGES, *OTHERS]
    if (schema := its_schema(message.__name__)) is not None
}

# Where we mean to differ, and why.
DEFAULTS_OF_OUR_OWN = {
    # Kafka's default is null, which librdkafka cannot read in a response (KAFKA-18646).
    ("PartitionData", "records"): b"",
    ("PartitionProduceData", "records"): b"",
}
# A broker advertises these only where something receives client telemetry.
ADVERTISED_ON_DEMAND = {
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0),
    ApiKey.PUSH_TELEMETRY: (0, 0),
}
NAMES_OF_OUR_OWN = {
    # Shorter, and the same in our header as in the rest of the code.
    "request_api_key": "api_key",
    "request_api_version": "api_version",
}


@pytest.mark.parametrize("message", SCHEMAS, ids=version_id)
def test_fields_kinds_versions_tags_and_defaults_are_those_of_the_schema(
    message: type[Any],
) -> None:
    schema = SCHEMAS[message]
    declared = declaration_of(message)
    valid = Versions.parse(schema["validVersions"])
    assert declared.versions & valid == declared.versions
    assert declared.flexible == Versions.parse(schema["flexibleVersions"])
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    assert described(message, declared.versions) == expected(
        schema["fields"], declared.versions, common
    )


def test_versions_are_those_that_a_kafka_4_3_broker_advertises() -> None:
    theirs = broker_versions((4, 3))
    ours = {key: (api.advertised.min, api.advertised.max) for key, api in APIS.items()}
    assert ours == {key: theirs.get(key) or ADVERTISED_ON_DEMAND[key] for key in APIS}


def described(struct: type[Any], within: Versions) -> list[dict[str, Any]]:
    """Our declaration, in words that a schema can be put into as well."""
    return [_described_field(struct, spec, within) for spec in declaration_of(struct).fields]


def _described_field(struct: type[Any], spec: Field, within: Versions) -> dict[str, Any]:
    present = spec.versions & within
    kind, nullable = spec.kind, NO_VERSIONS
    if isinstance(spec.kind, OrNull):
        kind, nullable = spec.kind.kind, spec.kind.versions & present
    default = spec.make_default()
    if isinstance(kind, Struct) and default is not None:
        default = ...
    if (struct.__name__, spec.name) in DEFAULTS_OF_OUR_OWN:
        assert default == DEFAULTS_OF_OUR_OWN[struct.__name__, spec.name]
        default = None
    return {
        "name": spec.name,
        "versions": str(present),
        "nullable": str(nullable),
        "tag": spec.tag,
        "flexible": spec.flexible,
        "default": default,
        **_described_kind(kind, present),
    }


def _described_kind(kind: Kind[Any], present: Versions) -> dict[str, Any]:
    match kind:
        case Fixed():
            return {"type": kind.name}
        case Text():
            return {"type": "string"}
        case Blob():
            return {"type": "bytes"}
        case RecordData():
            return {"type": "records"}
        case Struct():
            return {"type": "struct", "fields": described(kind.type, present)}
        case ArrayOf():
            inner = _described_kind(kind.element, present)
            return inner | {"type": f"[]{inner['type']}"}
    raise TypeError(f"no words for {kind!r}")


def expected(
    fields: list[dict[str, Any]], within: Versions, common: dict[str, Any]
) -> list[dict[str, Any]]:
    """A schema's fields in the same words; those of no version we have are left out."""
    return [
        _expected_field(field, within, common)
        for field in fields
        if Versions.parse(field["versions"]) & within
    ]


def _expected_field(
    field: dict[str, Any], within: Versions, common: dict[str, Any]
) -> dict[str, Any]:
    present = Versions.parse(field["versions"]) & within
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", field["name"]).lower()
    if "taggedVersions" in field:
        assert Versions.parse(field["taggedVersions"]) & within == present
    made: dict[str, Any] = {
        "name": NAMES_OF_OUR_OWN.get(name, name),
        "versions": str(present),
        "nullable": str(Versions.parse(field.get("nullableVersions", "none")) & present),
        "tag": field.get("tag"),
        "flexible": field.get("flexibleVersions") != "none",
    }
    array, base = re.fullmatch(r"(\[\])?(\w+)", field["type"]).groups("")  # type: ignore[union-attr]
    if base[0].isupper():
        inner = field.get("fields") or common[base]
        made |= {"type": f"{array}struct", "fields": expected(inner, present, common)}
    else:
        made["type"] = array + base
    return made | {"default": _expected_default(field, made["type"])}


def _expected_default(field: dict[str, Any], kind: str) -> Any:
    given = field.get("default")
    if given == "null" or kind == "records":
        return None
    if kind.startswith("[]"):
        return []
    if kind == "struct":
        return ...
    if kind == "bool":
        return str(given).lower() == "true"
    if kind == "uuid":
        return bytes(16)
    if kind == "bytes":
        return b""
    if kind == "string":
        return given or ""
    return float(given or 0) if kind == "float64" else int(str(given or 0), 0)
