"""The error that an answer tells of, for those who count.

It is its own code, or the first one among what it says of single things: topics, partitions,
groups. Looking for it is bounded, so that an answer of ten thousand costs no more than one of a
hundred.
"""

from __future__ import annotations

from typing import Any, Final

from rockgate.protocol.kafka.schema import Encoded, declaration_of
from rockgate.protocol.kafka.schema.kinds import ArrayOf, OrNull, Struct

LOOKED_AT_MAX: Final = 64


def first_partition_error(response: Any) -> int:
    """The error of an answer to Produce or Fetch, which have no declaration and come often."""
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                return int(partition.error_code)
    return int(getattr(response, "error_code", 0))


def first_error(response: Any) -> int:
    """The error code of a response, or the first one in it; 0 if it tells of none."""
    kind = type(response)
    lists = _LISTS.get(kind)
    if lists is None:
        lists = _LISTS[kind] = _lists_of(kind)
    own, names = lists
    if own and response.error_code:
        return int(response.error_code)
    for name in names:
        for item in (getattr(response, name) or ())[:LOOKED_AT_MAX]:
            if type(item) is Encoded:
                continue
            code = first_error(item)
            if code:
                return code
    return 0


_LISTS: dict[type, tuple[bool, tuple[str, ...]]] = {}


def _lists_of(kind: type) -> tuple[bool, tuple[str, ...]]:
    """Whether a message or a part of one has an error, and which of its lists may have some."""
    fields = declaration_of(kind).fields
    own = any(spec.name == "error_code" for spec in fields)
    return own, tuple(spec.name for spec in fields if _may_fail(spec.kind))


def _may_fail(kind: Any) -> bool:
    """Whether a field holds a list of things that have an error, or hold such lists."""
    if isinstance(kind, OrNull):
        kind = kind.kind
    if not isinstance(kind, ArrayOf) or not isinstance(kind.element, Struct):
        return False
    own, names = _lists_of(kind.element.type)
    return own or bool(names)
