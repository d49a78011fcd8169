"""Evaluates the parts of an expression for one message, in three-valued logic.

A part is a function from properties to a value. Strings compare with strings, numbers with numbers;
a property compared with a number is converted to one. A comparison of other types is None: unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, TypeAlias

Value: TypeAlias = str | int | float | bool | None
Properties: TypeAlias = Mapping[str, str]
Part: TypeAlias = Callable[[Properties], Value]

_SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_DIGITS_MAX: Final = 64
_TRUTH_MAX: Final = len("false")


def constant(value: Value) -> Part:
    """A constant."""
    return lambda properties: value


def variable(name: str) -> Part:
    """A property, or None."""
    return lambda properties: properties.get(name)


def compared(sign: str, left: Part, right: Part) -> Part:
    """A comparison of two parts."""
    operator = _SIGNS[sign]
    is_order = sign not in ("=", "<>")

    def compare(properties: Properties) -> Value:
        return _compare(operator, is_order, left(properties), right(properties))

    return compare


def between(value: Part, low: Part, high: Part) -> Part:
    """Whether a part is between two others, both included."""

    def is_between(properties: Properties) -> Value:
        it = value(properties)
        above = _compare(ge, True, it, low(properties))
        below = _compare(le, True, it, high(properties))
        if above is False or below is False:
            return False
        return None if above is None or below is None else True

    return is_between


def one_of(value: Part, texts: frozenset[str]) -> Part:
    """Whether a part is one of some strings."""

    def is_one(properties: Properties) -> Value:
        it = value(properties)
        return None if it is None else it in texts

    return is_one


def is_null(value: Part) -> Part:
    """Whether a part is missing; never unknown."""
    return lambda properties: value(properties) is None


def negated(part: Part) -> Part:
    """The negation; unknown stays unknown."""

    def negate(properties: Properties) -> Value:
        it = truth(part(properties))
        return None if it is None else not it

    return negate


def conjunction(parts: list[Part]) -> Part:
    """Whether all parts are true."""

    def all_of(properties: Properties) -> Value:
        result: bool | None = True
        for part in parts:
            it = truth(part(properties))
            if it is False:
                return False
            if it is None:
                result = None
        return result

    return all_of


def disjunction(parts: list[Part]) -> Part:
    """Whether any part is true."""

    def any_of(properties: Properties) -> Value:
        result: bool | None = False
        for part in parts:
            it = truth(part(properties))
            if it is True:
                return True
            if it is None:
                result = None
        return result

    return any_of


def truth(value: Value) -> bool | None:
    """A value as a condition: true, false, or unknown."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) <= _TRUTH_MAX:
        return {"true": True, "false": False}.get(value.lower())
    return None


def _compare(
    operator: Callable[[Any, Any], bool], is_order: bool, left: Value, right: Value
) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, bool) or isinstance(right, bool):
        left, right = truth(left), truth(right)
        if is_order or left is None or right is None:
            return None
        return operator(left, right)
    if isinstance(left, str) != isinstance(right, str):
        left, right = _number(left), _number(right)
        if left is None or right is None:
            return None
    elif isinstance(left, str) and is_order:
        # Two properties, or a property and a string: only numbers have an order.
        left, right = _number(left), _number(right)
        if left is None or right is None:
            return None
    return operator(left, right)


def _number(value: Value) -> int | float | None:
    if not isinstance(value, str):
        return value
    if len(value) > _DIGITS_MAX or not value.isascii() or "_" in value:
        return None
    try:
        return int(value)
    except ValueError:
        pass
    try:
        number = float(value)
    except ValueError:
        return None
    return number if number == number else None
