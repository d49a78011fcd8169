"""Tag codes: the hash of a message's tag, by which brokers filter before they read it.

It is Java's `String.hashCode`, because RocketMQ clients compute it on their side and compare.
"""

from __future__ import annotations

from functools import lru_cache

_CACHED_SIZE_MAX = 128


def tag_code(tags: bytes) -> int:
    """Return the code of a TAGS property; 0 for none."""
    # Tags are usually few and short; caching long ones would let a client fill memory.
    return cached(tags) if len(tags) <= _CACHED_SIZE_MAX else _compute(tags)


def _compute(tags: bytes) -> int:
    code = 0
    # Java hashes UTF-16 units, so a character outside the basic plane counts as two.
    text = tags.decode("utf-8", "surrogateescape").encode("utf-16-be", "surrogatepass")
    for at in range(0, len(text), 2):
        code = (code * 31 + (text[at] << 8 | text[at + 1])) & 0xFFFFFFFF
    return code - (1 << 32) if code >> 31 else code


cached = lru_cache(maxsize=4096)(_compute)
