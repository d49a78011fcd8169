"""Which partition a record goes to: by its key as Kafka's own clients do it, else taking turns.

The hash is murmur2 with Java's seed, so that a key goes where a Java producer would put it.
"""

from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash of a key, as an unsigned 32-bit number."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little")
        k = (k * _M) & _MASK
        k ^= k >> 24
        k = (k * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
    if length > whole:
        h ^= int.from_bytes(data[whole:], "little")
        h = (h * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    return h ^ (h >> 15)


def partition_of(key: bytes, count: int) -> int:
    """The partition of a key among `count`."""
    return (murmur2(key) & 0x7FFFFFFF) % count
