"""Integers bounded to Java's types, and the empty header."""

from typing import Annotated, TypeAlias

import msgspec

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class NoHeader(msgspec.Struct, frozen=True):
    """A header without fields; all data is in the body."""
