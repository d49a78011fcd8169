"""Unsigned varints: seven bits a byte, least significant first, the top bit set while more follow.

Flexible messages use them for every length, count and tag. They are bounded here: five bytes, 32
bits. A peer may pad one with empty groups, as Kafka allows; it may not go past the fifth byte.
"""

UVARINT_SIZE_MAX = 5
_UVARINT_MAX = 0xFFFFFFFF

Buffer = bytes | bytearray | memoryview

_SHORT = tuple(bytes((value,)) for value in range(128))


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """Read the varint at `at`: its value and the place after it.

    IndexError when the bytes end first, ValueError when it is longer than five bytes or 32 bits.
    """
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    return continue_uvarint(data, at + 1, byte)


def continue_uvarint(data: Buffer, at: int, first: int) -> tuple[int, int]:
    """Read the rest of a varint whose first byte was taken already and has its top bit set."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > _UVARINT_MAX:
                raise ValueError("varint over 32 bits")
            return value, at
    raise ValueError("varint over 5 bytes")


def uvarint(value: int) -> bytes:
    """The shortest varint of `value`, which must fit 32 bits."""
    if 0 <= value < 128:
        return _SHORT[value]
    if not 0 <= value <= _UVARINT_MAX:
        raise ValueError(f"varint out of range: {value}")
    # Two and three bytes hold the size of nearly every record batch.
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if value < 1 << 21:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
