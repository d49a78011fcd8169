"""Types of config values: parsing the text that a client sends, and rejecting it clearly.

A value is stored as text in one form only (no blanks around it, digits as the machine writes them,
`true` in lower case), so that later readers may compare and convert it without further checks. A
rejection is a ValueError whose message ends a sentence that begins with the config's name: "must be
a whole number of at least -1, not 'soon'".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

VALUE_SIZE_MAX = 32_767
_QUOTED_MAX = 80
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_THROTTLED = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")


class ConfigKind(IntEnum):
    """The kinds of Kafka's configs, as DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_WIDTHS = {ConfigKind.INT: 31, ConfigKind.SHORT: 15, ConfigKind.LONG: 63}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigType:
    """A type with its bounds; all values are parsed by `read`."""

    kind: ConfigKind
    low: float | None = None
    high: float | None = None
    also: int | None = None
    """A number outside the bounds that has a meaning of its own."""
    choices: tuple[str, ...] = ()
    is_replicas: bool = False
    """Whether it is Kafka's list of throttled replicas: `*`, or partition:broker pairs."""
    pattern: str | None = None
    """Further forms that a text may have besides its choices."""
    shape: str = ""
    """What the pattern accepts, for people."""

    def read(self, text: str) -> str:
        """The canonical form of a value; ValueError says what is wrong with it."""
        if len(text) > VALUE_SIZE_MAX:
            raise ValueError(f"must not exceed {VALUE_SIZE_MAX:,} characters")
        text = text.strip()
        match self.kind:
            case ConfigKind.BOOLEAN:
                return self._boolean(text)
            case ConfigKind.INT | ConfigKind.SHORT | ConfigKind.LONG:
                return self._whole(text)
            case ConfigKind.DOUBLE:
                return self._double(text)
            case ConfigKind.LIST:
                return ",".join(self._items(text))
            case _:
                return self._string(text)

    @property
    def accepts(self) -> str:
        """What may be given, for people."""
        if self.is_replicas:
            return "'*' or a list of PARTITION:BROKER"
        if self.choices:
            choices = (*self.choices, self.shape) if self.shape else self.choices
            of = "a list of " if self.kind is ConfigKind.LIST else "one of "
            return (of if len(choices) > 1 else "") + ", ".join(choices)
        if self.kind is ConfigKind.BOOLEAN:
            return "true or false"
        if self.kind is ConfigKind.LIST:
            return "a list"
        if self.kind is ConfigKind.STRING:
            return "text"
        return self._number_accepted()

    def _number_accepted(self) -> str:
        noun = "a number" if self.kind is ConfigKind.DOUBLE else "an integer"
        bounds = {
            (True, True): f" from {self.low} to {self.high}",
            (True, False): f" of at least {self.low}",
            (False, True): f" of at most {self.high}",
            (False, False): "",
        }[self.low is not None, self.high is not None]
        return noun + bounds + (f", or {self.also}" if self.also is not None else "")

    def _refusal(self, text: str) -> ValueError:
        quoted = text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}…"
        return ValueError(f"must be {self.accepts}, not {quoted!r}")

    def _boolean(self, text: str) -> str:
        value = text.lower()
        if value not in ("true", "false") or (self.choices and value not in self.choices):
            raise self._refusal(text)
        return value

    def _whole(self, text: str) -> str:
        if not _WHOLE.fullmatch(text):
            raise self._refusal(text)
        value, limit = int(text), 1 << _WIDTHS[self.kind]
        if not -limit <= value < limit:
            raise ValueError(f"must be a {_WIDTHS[self.kind] + 1}-bit integer, not {value}")
        if value != self.also and not self._is_within(value):
            raise self._refusal(text)
        return str(value)

    def _double(self, text: str) -> str:
        try:
            value = float(text)
        except ValueError:
            raise self._refusal(text) from None
        if not math.isfinite(value) or not self._is_within(value):
            raise self._refusal(text)
        return repr(value)

    def _is_within(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def _string(self, text: str) -> str:
        if not self.choices or text in self.choices:
            return text
        if self.pattern is None or not re.fullmatch(self.pattern, text):
            raise self._refusal(text)
        return text

    def _items(self, text: str) -> Sequence[str]:
        items = items_of(text)
        if self.is_replicas:
            if items != ["*"] and not all(map(_THROTTLED.fullmatch, items)):
                raise self._refusal(text)
        elif self.choices and not set(items) <= set(self.choices):
            raise self._refusal(text)
        elif "" in items:
            raise ValueError(f"must not contain empty elements: {text!r}")
        return list(dict.fromkeys(items))


def items_of(text: str) -> list[str]:
    """The elements of a list's text; none of an empty one."""
    return [item.strip() for item in text.split(",")] if text.strip() else []
