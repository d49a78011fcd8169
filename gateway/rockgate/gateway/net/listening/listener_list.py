"""Lists of listeners as settings have them: `NAME://HOST:PORT,…` and `NAME:SECURITY,…`.

The form is that of Kafka's `listeners` and `listener.security.protocol.map`. Every rejection is a
ValueError whose message is a phrase, for the sentence that names the setting.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from rockgate.gateway.net.address import Address

LISTENERS_MAX: Final = 16
WILDCARD: Final = "0.0.0.0"  # what an empty host means in Kafka's form
V = TypeVar("V")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def read_listeners(text: str, setting: str) -> Mapping[str, Address]:
    """The addresses by listener name, in order. An empty host binds every address."""
    found: dict[str, Address] = {}
    for entry in _entries(text, setting):
        name, slashes, address = entry.partition("://")
        if not slashes:
            raise ValueError(f"{setting} must be NAME://HOST:PORT separated by commas, not {entry}")
        if address.startswith(":"):
            address = WILDCARD + address
        try:
            parsed = Address.parse(address)
        except ValueError as error:
            raise ValueError(f"{setting} {error}") from None
        if parsed.is_closed:
            raise ValueError(f"{setting} must have an address for {name}; leave out what is off")
        _add(found, name, parsed, setting)
    return found


def read_map(text: str, setting: str) -> Mapping[str, str]:
    """The values of `NAME:VALUE,…` by listener name."""
    found: dict[str, str] = {}
    for entry in _entries(text, setting):
        name, colon, value = entry.partition(":")
        if not colon or not value.strip():
            raise ValueError(f"{setting} must be NAME:VALUE separated by commas, not {entry}")
        _add(found, name, value.strip(), setting)
    return found


def _entries(text: str, setting: str) -> Iterator[str]:
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    if len(entries) > LISTENERS_MAX:
        raise ValueError(f"{setting} must have at most {LISTENERS_MAX} listeners")
    return iter(entries)


def _add(found: dict[str, V], name: str, value: V, setting: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{setting} must name listeners by letters, digits, _, . and -: {name!r}")
    # As in Kafka, the case of a name means nothing.
    upper = name.upper()
    if upper in found:
        raise ValueError(f"{setting} has the listener {upper} twice")
    found[upper] = value
