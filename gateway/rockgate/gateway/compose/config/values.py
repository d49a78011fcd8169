"""Parsing and formatting of a single setting.

A value comes as text (environment, flags) or as what TOML made of it. Every rejection is a
ValueError whose message ends a sentence that starts with the setting's name: "must be a whole
number, not 'many'".
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import Literal, Union, get_args, get_origin

from rockgate.gateway.net.address import Address

VALUE_CHARS_MAX = 4096

_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_TIMES_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER = re.compile(r"([+-]?[0-9][0-9_]*)\s*([A-Za-z]*)")
_BOOLS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


def units_of(field_name: str) -> Mapping[str, int]:
    """The suffixes a number may have, derived from the unit in its setting's name."""
    words = field_name.split("_")
    if "bytes" in words:
        return _SIZES
    return _TIMES_MS if "ms" in words else {}


def read(given: object, hint: object, units: Mapping[str, int]) -> object:
    """Parse `given` into its typed value; ValueError if it has none."""
    if isinstance(given, str) and len(given) > VALUE_CHARS_MAX:
        raise ValueError(f"must not exceed {VALUE_CHARS_MAX:,} characters")
    if get_origin(hint) in (Union, UnionType):
        # An optional value is unset by not giving it, or by the word `none`.
        if isinstance(given, str) and given.strip().lower() == "none":
            return None
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is Literal:
        return _one_of(given, get_args(hint))
    if hint is int:
        return _whole_number(given, units)
    return _READERS[hint](given)


def show(value: object) -> str:
    """The text that `read` parses into this value."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def kind_of(hint: object) -> str:
    """The type of value that the setting accepts, for people."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is Literal:
        return " or ".join(get_args(hint))
    return _KINDS[hint]


def _whole_number(given: object, units: Mapping[str, int]) -> int:
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    match = _NUMBER.fullmatch(given.strip()) if isinstance(given, str) else None
    wanted = f"an integer, optionally with a unit ({', '.join(units)})" if units else "an integer"
    # 20 digits exceed any 64-bit value, and int() of a long text would be slow.
    if match is None or len(match[1]) > 20 or (match[2] and match[2] not in units):
        raise ValueError(f"must be {wanted}, not {given!r}")
    return int(match[1]) * units.get(match[2], 1)


def _one_of(given: object, choices: tuple[str, ...]) -> str:
    text = given.strip().lower() if isinstance(given, str) else given
    for choice in choices:
        if text == choice.lower():
            return choice
    raise ValueError(f"must be one of {', '.join(choices)}, not {given!r}")


def _boolean(given: object) -> bool:
    if isinstance(given, bool):
        return given
    value = _BOOLS.get(given.strip().lower()) if isinstance(given, str) else None
    if value is None:
        raise ValueError(f"must be true or false, not {given!r}")
    return value


def _number(given: object) -> float:
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return float(given)
    try:
        return float(given if isinstance(given, str) else "")
    except ValueError:
        raise ValueError(f"must be a number, not {given!r}") from None


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise ValueError(f"must be a string, not {given!r}")
    return given


def _path(given: object) -> Path:
    text = _text(given)
    if not text or "\0" in text:
        raise ValueError(f"must be a path, not {given!r}")
    return Path(text).expanduser()


def _address(given: object) -> Address:
    return Address.parse(_text(given))


_READERS: Mapping[object, Callable[[object], object]] = {
    bool: _boolean,
    float: _number,
    str: _text,
    Path: _path,
    Address: _address,
}
_KINDS: Mapping[object, str] = {
    bool: "true or false",
    int: "integer",
    float: "number",
    str: "text",
    Path: "path",
    Address: "HOST:PORT",
}
