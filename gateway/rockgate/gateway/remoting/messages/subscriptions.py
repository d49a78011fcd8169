"""Subscription expressions: everything, tags, or SQL over properties.

Tags are compared by their hash, which the queue has; the client compares the texts, as with
RocketMQ's own broker. An expression is compiled once and evaluated for each message, within a bound
per pull: it answers with what it has found, and the next pull continues from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.runtime.bounded_cache import BoundedCache
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import parse_properties
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.sql import Expression, SqlError, compile_expression
from rockgate.store.api.queues import tag_code

TAG: Final = "TAG"
SQL92: Final = "SQL92"
ALL: Final = "*"
TAGS_CHARS_MAX: Final = 16_384
"""Maximum size of a list of tags; expressions have the limits of `sql`."""
WORK_MAX: Final = 24_576
"""Cost limit of an expression per pull, in words evaluated: about half a microsecond each."""
ENTRY_WORK: Final = 8
"""Cost of opening one entry, besides its properties."""
PROPERTY_BYTES_PER_WORK: Final = 32
CACHE_BYTES_MAX: Final = 16 << 20
WORD_BYTES: Final = 256
"""Approximate memory of a compiled word."""
TAG_BYTES: Final = 128


class Filter(NamedTuple):
    """The conditions on a message; None where there is none."""

    accepts_code: Callable[[int], bool] | None = None
    accepts: Expression | None = None


EVERYTHING = Filter()


class Evaluation:
    """An expression within the cost limit of one pull; None once the limit is reached."""

    __slots__ = ("_expression", "_left")

    def __init__(self, expression: Expression, work_max: int = WORK_MAX) -> None:
        self._expression = expression
        self._left = work_max

    @property
    def is_spent(self) -> bool:
        """Whether the limit is reached."""
        return self._left <= 0

    def entry(self, view: memoryview) -> bool | None:
        """Evaluate an entry of the log."""
        if self._left <= 0:
            return None
        packed = envelope.properties_of(view, envelope.read(view))
        self._left -= ENTRY_WORK + self._expression.cost + len(packed) // PROPERTY_BYTES_PER_WORK
        return self._expression(parse_properties(packed))

    def properties(self, properties: Mapping[str, str]) -> bool | None:
        """Evaluate the properties of an opened message."""
        if self._left <= 0:
            return None
        self._left -= ENTRY_WORK + self._expression.cost + len(properties)
        return self._expression(properties)


class Filters:
    """Recently used filters, within a bound of bytes."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self.cache: BoundedCache[tuple[str, str], Filter] = BoundedCache(bytes_max)

    def of(self, kind: str, expression: str) -> Filter:
        """The filter of a subscription; SUBSCRIPTION_PARSE_FAILED says what is wrong with it."""
        if expression == ALL and kind == TAG:
            # The most common subscription needs no lookup.
            return EVERYTHING
        key = (kind, expression)
        found = self.cache.get(key)
        if found is not None:
            return found
        made, size = _compiled(kind, expression.strip())
        # The expression is cached with it, and a text takes up to four bytes a character.
        self.cache.put(key, made, size + 4 * len(expression) + TAG_BYTES)
        return made


_FILTERS: Final = Filters()
filter_of: Final = _FILTERS.of


def _compiled(kind: str, text: str) -> tuple[Filter, int]:
    """A filter, and its approximate size in bytes."""
    if kind in ("", TAG):
        return _of_tags(text)
    if kind != SQL92:
        raise Refused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"Unknown expression type {kind[:40]!r}."
        )
    try:
        expression = compile_expression(text)
    except SqlError as wrong:
        raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(wrong)) from None
    return Filter(accepts=expression), expression.cost * WORD_BYTES


def _of_tags(text: str) -> tuple[Filter, int]:
    if text in ("", ALL):
        return EVERYTHING, 0
    if len(text) > TAGS_CHARS_MAX:
        raise Refused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            f"Tag expression is {len(text):,} characters; the maximum is {TAGS_CHARS_MAX:,}.",
        )
    tags = [tag.strip() for tag in text.split("||")]
    codes = frozenset(tag_code(tag.encode("utf-8", "surrogatepass")) for tag in tags if tag)
    if not codes:
        raise Refused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"Subscription {text[:80]!r} has no tags."
        )
    return Filter(accepts_code=codes.__contains__), len(codes) * TAG_BYTES
