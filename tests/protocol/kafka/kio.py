"""kio as an oracle: its entity for each version of our messages, and conversion of values."""

import dataclasses
import io
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any
from uuid import UUID

import kio.index
from kio.serial import entity_reader, entity_writer

from rockgate.protocol.kafka.schema import ZERO_UUID, declaration_of
from rockgate.protocol.kafka.schema.kinds import ArrayOf, Fixed, Kind, OrNull, Struct


def its_type(message: type[Any], version: int) -> Any:
    """Its class for one version of a message."""
    declaration = declaration_of(message)
    if declaration.name.endswith("Request"):
        return kio.index.load_request_schema(declaration.key, version)
    return kio.index.load_response_schema(declaration.key, version)


def read(message: type[Any], version: int, body: bytes) -> Any:
    """Decode our bytes, all of them, with kio."""
    value, size = entity_reader(its_type(message, version))(body, 0)
    assert size == len(body)
    return value


def write(its_value: Any) -> bytes:
    """Encode its value with kio."""
    with io.BytesIO() as buffer:
        entity_writer(type(its_value))(buffer, its_value)
        return buffer.getvalue()


def from_its_value(message: type[Any], its_value: Any, version: int) -> Any:
    """Convert its value to ours. It renames and retypes times, so fields are matched by order."""
    ours = [spec for spec in declaration_of(message).fields if version in spec.versions]
    theirs = dataclasses.fields(its_value)
    assert len(ours) == len(theirs), (message, version)
    made = {}
    for spec, field in zip(ours, theirs, strict=True):
        assert spec.name.startswith(field.name), (spec.name, field.name)
        made[spec.name] = _from_its(spec.kind, getattr(its_value, field.name), version)
    return message(**made)


def _from_its(kind: Kind[Any], value: Any, version: int) -> Any:
    match kind, value:
        case Fixed(), None:
            # It represents zero differently.
            return ZERO_UUID
        case _, None:
            return None
        case OrNull(), _:
            return _from_its(kind.kind, value, version)
        case ArrayOf(), _:
            return [_from_its(kind.element, item, version) for item in value]
        case Struct(), _:
            return from_its_value(kind.type, value, version)
        case _, UUID():
            return value.bytes
        case _, timedelta():
            return round(value / timedelta(milliseconds=1))
        case _, datetime():
            return round(value.timestamp() * 1000)
        case _, IntEnum():
            return int(value)
    return value
