"""Changes of many grants in parts: the loop serves other clients between them.

A part is all or nothing, and so is a change that fits one. Beyond that, what is denied is added
first and removed last: whatever is decided between two parts, no one may do more than before or
after the change, and a change that fails half-way can be asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from rockgate.gateway.security.grants import Grant, Permission

PART: Final = 500
"""Grants that are changed in one turn of the loop."""


class Changing(Protocol):
    """Grants that can be added and removed."""

    def add(self, grants: Iterable[Grant], /) -> None:
        """Add grants, all or none."""

    def remove(self, grants: Iterable[Grant], /) -> None:
        """Remove grants, all or none."""


async def add_in_parts(grants: Changing, made: Iterable[Grant]) -> None:
    """Add grants; refusals first."""
    await _in_parts(grants.add, sorted(made, key=_is_allowed))


async def remove_in_parts(grants: Changing, gone: Iterable[Grant]) -> None:
    """Remove grants; refusals last."""
    await _in_parts(grants.remove, sorted(gone, key=_is_allowed, reverse=True))


def _is_allowed(grant: Grant) -> bool:
    return grant.permission is Permission.ALLOW


async def _in_parts(change: Callable[[Iterable[Grant]], None], grants: list[Grant]) -> None:
    for begin in range(0, len(grants), PART):
        if begin:
            await asyncio.sleep(0)
        change(grants[begin : begin + PART])
