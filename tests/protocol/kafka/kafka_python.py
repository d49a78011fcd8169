"""kafka-python as an oracle: its messages by name, and conversion of values."""

import json
import re
import warnings
from functools import cache
from importlib import resources
from typing import Any
from uuid import UUID

from rockgate.protocol.kafka.schema import ZERO_UUID, declaration_of
from rockgate.protocol.kafka.schema.kinds import ArrayOf, Fixed, Kind, OrNull, Struct

with warnings.catch_warnings():
    # It reads its schemas with a deprecated function.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.api_data import ApiData
    from kafka.protocol.api_header import ResponseClassRegistry
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.broker_version_data import BROKER_API_VERSIONS


@cache
def its_message(name: str) -> Any:
    """Return its codec for a message, made from the schema it contains; None without one.

    Its own classes rename some fields and convert bit fields to sets; a new class over the same
    schema does not. The registry that its clients use must stay unchanged.
    """
    if its_schema(name) is None:
        return None
    registry = ResponseClassRegistry._response_class_registry
    before = dict(registry)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made = type(ApiMessage)(name, (ApiMessage,), {})
    registry.clear()
    registry.update(before)
    return made


@cache
def its_data(name: str) -> Any:
    """Return its codec for versioned data inside a message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return type(ApiData)(name, (ApiData,), {})


def its_schema(name: str) -> dict[str, Any] | None:
    """Return Kafka's JSON schema of a message as contained in kafka-python, or None."""
    file = resources.files("kafka.protocol.schemas.resources") / f"{name}.json"
    if not file.is_file():
        return None
    text = re.sub(r"(?m)^\s*//.*$", "", file.read_text(encoding="utf-8"))
    schema: dict[str, Any] = json.loads(text)
    return schema


def broker_versions(release: tuple[int, int]) -> dict[int, tuple[int, int]]:
    """Return the API versions that brokers of a release advertise, by key."""
    return {int(key): versions for key, versions in BROKER_API_VERSIONS[release].items()}


def to_its_value(its_type: Any, value: Any, version: int) -> Any:
    """Convert our value to `its_type`, with only the fields of the version."""
    made = {}
    for spec in declaration_of(type(value)).fields:
        held = getattr(value, spec.name)
        if version in spec.versions and (spec.tag is None or held != spec.make_default()):
            its_field = its_type.fields[spec.name]
            made[spec.name] = _to_its(its_field, spec.kind, held, version)
    return its_type(version=version, **made)


def _to_its(its_field: Any, kind: Kind[Any], value: Any, version: int) -> Any:
    if value is None:
        return None
    match kind:
        case OrNull():
            return _to_its(its_field, kind.kind, value, version)
        case ArrayOf():
            return [_to_its(its_field, kind.element, item, version) for item in value]
        case Struct():
            return to_its_value(its_field.data_class, value, version)
        case Fixed() if kind.name == "uuid":
            return UUID(bytes=value)
    return value


def from_its_value(our_type: type[Any], its_value: Any, version: int) -> Any:
    """Convert its value to ours."""
    made = {}
    for spec in declaration_of(our_type).fields:
        held = getattr(its_value, spec.name)
        # A missing tagged struct is None, where Kafka has a struct of defaults.
        if version in spec.versions and not (held is None and isinstance(spec.kind, Struct)):
            made[spec.name] = _from_its(spec.kind, held, version)
    return our_type(**made)


def _from_its(kind: Kind[Any], value: Any, version: int) -> Any:
    match kind:
        case Fixed() if kind.name == "uuid":
            # It represents zero as None.
            return ZERO_UUID if value is None else value.bytes
        case _ if value is None:
            return None
        case OrNull():
            return _from_its(kind.kind, value, version)
        case ArrayOf():
            return [_from_its(kind.element, item, version) for item in value]
        case Struct():
            return from_its_value(kind.type, value, version)
    return value
