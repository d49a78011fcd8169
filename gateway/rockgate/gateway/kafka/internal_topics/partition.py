"""Which partition of an internal topic a group or a transactional id has."""

from typing import Final

from rockgate.protocol.entry.tagcode import tag_code

_INT_MIN: Final = -(1 << 31)


def partition_of(name: str, count: int) -> int:
    """The partition of a group or transactional id, by Java's hash of it."""
    code = tag_code(name.encode("utf-8", "surrogatepass"))
    return (0 if code == _INT_MIN else abs(code)) % count
