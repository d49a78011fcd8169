"""Properties of an entry, `name 0x01 value 0x02` in the order they were written; and its hosts."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from rockgate.protocol.entry.codec import Entry
from rockgate.protocol.entry.format import CHECKSUM_SIZE, NAME_END, PROPERTY_END, Buffer

_U32: Final = struct.Struct(">I")


def properties_of(buffer: Buffer, entry: Entry) -> bytes:
    """Return the entry's property bytes without the checksum."""
    size = entry.properties_size - CHECKSUM_SIZE
    return bytes(buffer[entry.properties_at : entry.properties_at + max(0, size)])


def pack_properties(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Pack name and value pairs; none may hold PROPERTY_END, nor a name NAME_END."""
    parts = []
    for name, value in pairs:
        if not name or "\x01" in name or "\x02" in name or "\x02" in value:
            raise ValueError(f"property {name!r} is empty or contains a separator")
        parts.append(f"{name}\x01{value}\x02")
    return "".join(parts).encode("utf-8", "surrogateescape")


def parse_properties(data: bytes) -> dict[str, str]:
    """Return the properties by name.

    As in RocketMQ the last of two with the same name wins, and a part without a name is skipped.
    Bytes that are not UTF-8 become surrogates, which `pack_properties` turns back.
    """
    found: dict[str, str] = {}
    for part in data.decode("utf-8", "surrogateescape").split("\x02"):
        name, separator, value = part.partition("\x01")
        if separator and name:
            found[name] = value
    return found


def get_property(data: bytes, name: bytes) -> bytes | None:
    """Return one property's value, as `parse_properties` would, without parsing the others."""
    needle = name + NAME_END
    at = len(data)
    # From the end, as the last one wins. A hit inside a longer name or a value is skipped.
    while (at := data.rfind(needle, 0, at + len(needle) - 1)) >= 0:
        if at == 0 or data[at - 1] == 2:
            start = at + len(needle)
            end = data.find(PROPERTY_END, start)
            return data[start:] if end < 0 else data[start:end]
    return None


def pack_host(address: bytes, port: int) -> bytes:
    """Return a host as the envelope holds it: 4 or 16 bytes of address and the port in 4."""
    return address + _U32.pack(port)


def unpack_host(host: bytes) -> tuple[bytes, int]:
    """Return address bytes and port of a host field."""
    return host[:-4], int(_U32.unpack(host[-4:])[0])
