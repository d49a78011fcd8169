"""Ranges of protocol versions, written as Kafka writes them: "3+", "0-12", "7", "none".

A range is a plain value: it has two ends and does not depend on the messages that use it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

VERSION_MAX = 0x7FFF
"""Versions are int16 on the wire, so an open range ends here."""

_RANGE = re.compile(r"(\d+)(?:-(\d+)|(\+))?")


@dataclass(frozen=True, slots=True)
class Versions:
    """All versions from `min` to `max`, both included; empty when `min` is above `max`."""

    min: int
    max: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "3+", "0-12", "7" or "none"; anything else is a ValueError."""
        if text == "none":
            return cls(0, -1)
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ValueError(f"not a version range: {text!r}")
        low = int(match[1])
        high = VERSION_MAX if match[3] else int(match[2] or low)
        if not low <= high <= VERSION_MAX:
            raise ValueError(f"not a version range: {text!r}")
        return cls(low, high)

    def __contains__(self, version: int) -> bool:
        return self.min <= version <= self.max

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.min, self.max + 1))

    def __bool__(self) -> bool:
        return self.min <= self.max

    def __and__(self, other: "Versions") -> "Versions":
        low, high = max(self.min, other.min), min(self.max, other.max)
        return Versions(low, high) if low <= high else NO_VERSIONS

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.max == VERSION_MAX:
            return f"{self.min}+"
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"


NO_VERSIONS = Versions(0, -1)
"""The empty range, "none"."""
