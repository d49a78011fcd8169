"""Fields whose values are hidden: by name or path, in all topics or in some.

A rule hides the value of every field that it names, wherever it is in a structured message, and of
headers of that name. A message without fields is hidden whole in a topic with a rule: whether the
secret is in its text is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final

from rockgate.console.content.encodings import Decoded, Encoding, of_tree

HIDDEN: Final = "•••"
DEPTH_MAX: Final = 64


def fields_for(topic: str, rules: Sequence[str]) -> tuple[str, ...]:
    """The fields that rules hide in a topic."""
    found = []
    for rule in rules:
        pattern, colon, field = rule.rpartition(":")
        if not colon or fnmatchcase(topic, pattern):
            found.append(field)
    return tuple(found)


def masked(decoded: Decoded, fields: Sequence[str]) -> Decoded:
    """A value without what these fields hold."""
    if not fields or decoded.encoding in (Encoding.NULL, Encoding.EMPTY):
        return decoded
    if not decoded.is_structured:
        return replace(decoded, text=HIDDEN, is_cut=False)
    tree = _masked(decoded.tree, fields, "", 0)
    return of_tree(decoded.encoding, tree, decoded.schema_id)


def is_masked(name: str, fields: Sequence[str]) -> bool:
    """Whether the field or header of this name, or path with dots, is hidden."""
    last = name.rpartition(".")[2]
    return any(fnmatchcase(name, each) or fnmatchcase(last, each) for each in fields)


def _masked(value: Any, fields: Sequence[str], path: str, depth: int) -> Any:
    if depth > DEPTH_MAX:
        return HIDDEN
    if isinstance(value, dict):
        found = {}
        for key, each in value.items():
            inner = f"{path}.{key}" if path else str(key)
            hidden = is_masked(inner, fields)
            found[key] = HIDDEN if hidden else _masked(each, fields, inner, depth + 1)
        return found
    if isinstance(value, list | tuple):
        return [_masked(each, fields, path, depth + 1) for each in value]
    return value
