"""Changes of very many grants are made in parts, and in an order that gives no one too much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from rockgate.gateway.remoting.access.grant_changes import PART, add_in_parts, remove_in_parts
from rockgate.gateway.security.grants import (
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)


def grant(number: int, permission: Permission) -> Grant:
    return Grant(
        AclResourceType.TOPIC,
        f"topic-{number}",
        PatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        permission,
    )


class Noted:
    """Grants that note each change, and how many turns of the loop there were before it."""

    def __init__(self) -> None:
        self.changes: list[list[Grant]] = []
        self.turns: list[int] = []
        self._turn = 0

    def add(self, grants: Iterable[Grant]) -> None:
        self.changes.append(list(grants))
        self.turns.append(self._turn)

    remove = add

    async def count(self) -> None:
        while True:
            self._turn += 1
            await asyncio.sleep(0)


MIXED = [
    grant(number, (Permission.ALLOW, Permission.DENY)[number % 2]) for number in range(3 * PART)
]


async def changed(change: object) -> Noted:
    noted = Noted()
    counting = asyncio.create_task(noted.count())
    await change(noted, MIXED)  # type: ignore[operator] # either of the two
    counting.cancel()
    return noted


async def test_the_loop_turns_between_the_parts() -> None:
    for change in (add_in_parts, remove_in_parts):
        noted = await changed(change)
        assert sorted(each for part in noted.changes for each in part) == sorted(MIXED)
        assert all(len(part) <= PART for part in noted.changes)
        assert len(set(noted.turns)) == len(noted.turns) >= 3


async def test_what_is_denied_is_added_first_and_removed_last() -> None:
    added = [each.permission for part in (await changed(add_in_parts)).changes for each in part]
    removed = [
        each.permission for part in (await changed(remove_in_parts)).changes for each in part
    ]
    half = len(MIXED) // 2
    assert added == [Permission.DENY] * half + [Permission.ALLOW] * half
    assert removed == list(reversed(added))


async def test_nothing_to_change_is_no_change() -> None:
    noted = Noted()
    await add_in_parts(noted, [])
    await remove_in_parts(noted, [])
    assert noted.changes == []
