"""Which messages a search shows: by key, header, a part of the value, and SQL92 over JSON fields.

Filters see what the reader may see: a masked field cannot be guessed by searching for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rockgate.cli.admin.messages import StoredMessage
from rockgate.console.content.encodings import Decoded, decode
from rockgate.console.content.masks import is_masked, masked
from rockgate.console.schemas.registry import Registry
from rockgate.protocol.remoting.sql import Expression, SqlError, compile_expression

DEPTH_MAX: Final = 8
FIELDS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """All of these have to match; an empty one matches every message."""

    key: str = ""
    header: str = ""
    """`NAME`, or `NAME=PART`."""
    value: str = ""
    sql: Expression | None = None
    fields: Sequence[str] = ()
    """The masked ones."""
    registry: Registry | None = None

    def passes(self, message: StoredMessage) -> bool:
        """Whether a message matches."""
        if self.key and self.key.encode() not in (message.key or b""):
            return False
        if self.header and not self._has_header(message):
            return False
        if not self.value and self.sql is None:
            return True
        decoded = masked(decode(message.value, self.registry), self.fields)
        if self.value and self.value.lower() not in decoded.text.lower():
            return False
        return self.sql is None or self.sql(properties_of(message, decoded, self.fields))

    def _has_header(self, message: StoredMessage) -> bool:
        name, equals, part = self.header.partition("=")
        return any(
            each == name
            and not (equals and is_masked(each, self.fields))
            and (not equals or part.encode() in (value or b""))
            for each, value in message.headers
        )


def compiled(
    *,
    key: str,
    header: str,
    value: str,
    sql: str,
    fields: Sequence[str] = (),
    registry: Registry | None = None,
) -> Filter:
    """A filter of what a reader typed; ValueError says what is wrong with the SQL."""
    try:
        expression = compile_expression(sql) if sql.strip() else None
    except SqlError as error:
        raise ValueError(f"the expression is invalid: {error}") from None
    return Filter(
        key=key, header=header, value=value, sql=expression, fields=fields, registry=registry
    )


def properties_of(
    message: StoredMessage, decoded: Decoded, fields: Sequence[str] = ()
) -> dict[str, str]:
    """What an expression can name: headers, and fields of the value, nested ones as `a_b`."""
    found = {
        name: (value or b"").decode("utf-8", "replace")
        for name, value in message.headers
        if not is_masked(name, fields)
    }
    if isinstance(decoded.tree, dict):
        _flatten(decoded.tree, "", found, 0)
    return found


def _flatten(tree: dict[Any, Any], prefix: str, found: dict[str, str], depth: int) -> None:
    for name, value in tree.items():
        if len(found) >= FIELDS_MAX:
            return
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            if depth < DEPTH_MAX:
                _flatten(value, f"{key}_", found, depth + 1)
        elif isinstance(value, bool):
            found[key] = "true" if value else "false"
        elif value is not None and not isinstance(value, list):
            found[key] = str(value)
