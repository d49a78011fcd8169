"""The entities and kinds of quotas, and their validation.

An entity is known by its parts in order of type; a part without a name is the default of its type.
Every rejection is INVALID_REQUEST with a sentence.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable
from typing import Final, TypeAlias

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.kafka.errors import ErrorCode

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (CLIENT_ID, IP, USER)

PRODUCER_BYTES: Final = "producer_byte_rate"
CONSUMER_BYTES: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
MUTATIONS: Final = "controller_mutation_rate"
CONNECTIONS: Final = "connection_creation_rate"

_OF_CLIENTS: Final = frozenset({PRODUCER_BYTES, CONSUMER_BYTES, REQUEST_PERCENTAGE, MUTATIONS})
_OF_ADDRESSES: Final = frozenset({CONNECTIONS})
_WHOLE: Final = frozenset({PRODUCER_BYTES, CONSUMER_BYTES, CONNECTIONS})
_LEAST: Final = {PRODUCER_BYTES: 100.0, CONSUMER_BYTES: 100.0}
"""Bytes per second: about the size of the smallest Produce request."""
_LONG_MAX: Final = (1 << 63) - 1
NAME_CHARS_MAX: Final = 1_000

Part: TypeAlias = tuple[str, str | None]
Entity: TypeAlias = tuple[Part, ...]


def refuse(reason: str) -> RequestError:
    """An error in what a client gave."""
    return RequestError(ErrorCode.INVALID_REQUEST, reason)


def read_entity(parts: Iterable[Part]) -> Entity:
    """An entity in its canonical form. Of a repeated type the last one holds, as in Kafka."""
    found: dict[str, str | None] = {}
    for type_, name in parts:
        if type_ not in TYPES:
            raise refuse(
                f"Unknown entity type {quoted(type_)}; expected one of {', '.join(TYPES)}."
            )
        if name == "":
            raise refuse(f"Entity name of {type_} must not be empty; use null for the default.")
        if name is not None and len(name) > NAME_CHARS_MAX:
            raise refuse(f"Entity name of {type_} exceeds {NAME_CHARS_MAX:,} characters.")
        found[type_] = _address(name) if type_ == IP and name is not None else name
    if not found:
        raise refuse("An entity requires at least one component.")
    if IP in found and len(found) > 1:
        raise refuse("Entity type ip cannot be combined with user or client-id.")
    return tuple(sorted(found.items()))


def _address(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        raise refuse(f"{quoted(name)} is not an IP address; host names are not resolved.") from None


def check_quota(entity: Entity, quota: str, value: float) -> None:
    """Reject a quota that the entity cannot have, or an invalid value."""
    is_address = entity[0][0] == IP
    known = _OF_ADDRESSES if is_address else _OF_CLIENTS
    if quota not in known:
        whom = "ip" if is_address else "user and client-id"
        raise refuse(
            f"Unknown quota {quoted(quota)} for {whom}; expected one of {', '.join(sorted(known))}."
        )
    if not math.isfinite(value) or value <= 0:
        raise refuse(f"Quota {quota} must be greater than 0, not {value}.")
    if quota in _WHOLE and (value > _LONG_MAX or value != int(value)):
        raise refuse(f"Quota {quota} must be a 64-bit integer, not {value}.")
    if value < _LEAST.get(quota, 0.0):
        raise refuse(
            f"Quota {quota} of {value:g} would block every request; the minimum is "
            f"{_LEAST[quota]:g}."
        )
