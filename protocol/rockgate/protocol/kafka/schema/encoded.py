"""Array elements encoded in advance: cached for many responses, or encoded in slices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes of structs that follow each other, in one version of one message.

    Elements that many responses repeat (a cluster's topics) are cached in this form until they
    change. The encoder copies the bytes after checking that they are of the right struct and
    version: bytes of another version would silently corrupt the response.
    """

    struct: type
    version: int
    data: bytes
    count: int = 1
    """The number of array elements in these bytes."""

    def bytes_for(self, struct: type, version: int) -> bytes:
        """The bytes, if they are of `struct` in `version`; ValueError if not."""
        if self.struct is not struct or self.version != version:
            raise ValueError(
                f"encoded {self.struct.__name__} v{self.version} "
                f"stands where {struct.__name__} v{version} is needed"
            )
        return self.data


def join(struct: type, version: int, parts: Iterable[Encoded]) -> Encoded:
    """Elements as one, in the order given; ValueError if one was made for something else."""
    parts = list(parts)
    data = b"".join([part.bytes_for(struct, version) for part in parts])
    return Encoded(struct, version, data, sum([part.count for part in parts]))


def element_count(items: Sequence[Any]) -> int:
    """How many elements an array of structs and encoded ones has on the wire."""
    return sum([item.count if item.__class__ is Encoded else 1 for item in items])
