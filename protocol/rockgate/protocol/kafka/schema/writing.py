"""Runtime support of generated encoders."""

from collections.abc import Callable
from struct import Struct
from typing import Any

from rockgate.protocol.kafka.fields import uvarint

Pack = Callable[..., bytes]

_SHAPES_MAX = 256
_SHAPE_COUNT_MAX = 64


class Run:
    """A run of neighbouring values written by one call.

    `parts` holds `struct` codes. "U" is a varint that ends the run: the length of the next field.
    Nearly all lengths take one byte and are packed with the run.
    """

    def __init__(self, parts: list[str]) -> None:
        self._short = Struct(">" + "".join("B" if part == "U" else part for part in parts)).pack
        self._lead = Struct(">" + "".join(part for part in parts if part != "U")).pack

    @property
    def pack(self) -> Pack:
        """For a run without a varint, or whose varint is below 128."""
        return self._short

    def pack_long(self, *values: Any) -> bytes:
        """For a run whose varint takes more than one byte."""
        return self._lead(*values[:-1]) + uvarint(values[-1])


class Shapes:
    """A run that contains arrays of numbers: one `struct` for each combination of their counts.

    `parts` holds `struct` codes; ("U", code) is an array preceded by a varint and ("i", code) one
    preceded by an int32. A response repeats a few shapes (partitions with one replica, with three),
    so these are cached; the memory of the cache is bounded.
    """

    def __init__(self, parts: list[str | tuple[str, str]]) -> None:
        self._parts = parts
        self._known: dict[tuple[int, ...], Pack] = {}
        self.get = self._known.get

    def make(self, counts: tuple[int, ...]) -> Pack:
        """The function that packs arrays of these counts, in the order of the run."""
        if any(count > 126 for count in counts):
            return lambda *values: self._pack_long(counts, values)
        codes, index = [">"], 0
        for part in self._parts:
            if isinstance(part, tuple):
                head, code = part
                codes.append(("B" if head == "U" else head) + code * counts[index])
                index += 1
            else:
                codes.append(part)
        pack = Struct("".join(codes)).pack
        if sum(counts) <= _SHAPE_COUNT_MAX:
            if len(self._known) >= _SHAPES_MAX:
                self._known.clear()
            self._known[counts] = pack
        return pack

    def _pack_long(self, counts: tuple[int, ...], values: tuple[Any, ...]) -> bytes:
        out, index, at = [], 0, 0
        for part in self._parts:
            if isinstance(part, tuple):
                head, code = part
                count = counts[index]
                index += 1
                out.append(uvarint(values[at]) if head == "U" else Struct(">i").pack(values[at]))
                out.append(Struct(f">{code * count}").pack(*values[at + 1 : at + 1 + count]))
                at += 1 + count
            else:
                out.append(Struct(">" + part).pack(values[at]))
                at += 1
        return b"".join(out)


def pack_array(head: str, code: str, values: list[Any] | None) -> bytes:
    """An array of numbers that may be null."""
    if values is None:
        return b"\x00" if head == "U" else b"\xff\xff\xff\xff"
    count = len(values)
    lead = uvarint(count + 1) if head == "U" else Struct(">i").pack(count)
    return lead + Struct(">" + code * count).pack(*values)
