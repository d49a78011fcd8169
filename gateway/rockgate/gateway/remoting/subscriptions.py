"""What a consumer wants of a topic: all of it, some tags, or an expression over properties.

Tags are compared by their hash, which the queue has; the client compares the texts, as with
RocketMQ's own broker. An expression is compiled once and asked for each message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from rockgate.gateway.remoting.errors import Refused
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import parse_properties
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.sql import SqlError, compile_expression
from rockgate.store.tags import tag_code

TAG = "TAG"
SQL92 = "SQL92"
ALL = "*"


class Filter(NamedTuple):
    """What to ask of a message; None where nothing is asked."""

    accepts_code: Callable[[int], bool] | None = None
    accepts: Callable[[Mapping[str, str]], bool] | None = None

    def accepts_entry(self, view: memoryview) -> bool:
        """Ask the expression about an entry of the log."""
        assert self.accepts is not None
        read = envelope.read(view)
        return self.accepts(parse_properties(envelope.properties_of(view, read)))


EVERYTHING = Filter()


@lru_cache(maxsize=4096)
def filter_of(kind: str, expression: str) -> Filter:
    """The filter of a subscription; SUBSCRIPTION_PARSE_FAILED says what is wrong with it."""
    text = expression.strip()
    if kind in ("", TAG):
        if text in ("", ALL):
            return EVERYTHING
        tags = [tag.strip() for tag in text.split("||")]
        codes = frozenset(tag_code(tag.encode()) for tag in tags if tag)
        if not codes:
            raise Refused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"subscription {text[:80]!r} has no tag"
            )
        return Filter(accepts_code=codes.__contains__)
    if kind != SQL92:
        raise Refused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"expression type {kind[:40]!r} is unknown"
        )
    try:
        return Filter(accepts=compile_expression(text))
    except SqlError as wrong:
        raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(wrong)) from None
