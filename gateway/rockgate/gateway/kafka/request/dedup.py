"""Finds items that a request names more than once, which most APIs reject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import TypeVar

PIECE_COUNT = 500
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def once(
    items: Sequence[Item], key: Callable[[Item], Key]
) -> tuple[Collection[Item], AbstractSet[Key]]:
    """The distinct items, in order of first occurrence, and the keys that were repeated."""
    keys = list(map(key, items))
    if len(set(keys)) == len(keys):
        # Nearly always true. The loop is blocked meanwhile; large requests take the path below.
        return items, frozenset()
    repeated = frozenset(each for each, count in Counter(keys).items() if count > 1)
    return dict(zip(keys, items, strict=True)).values(), repeated


def once_in_steps(
    items: Sequence[Item], key: Callable[[Item], Key]
) -> Generator[None, None, tuple[Collection[Item], AbstractSet[Key]]]:
    """The same as `once`, for work in slices: it yields to the loop regularly."""
    seen: set[Key] = set()
    for at in range(0, len(items), PIECE_COUNT):
        seen.update(map(key, items[at : at + PIECE_COUNT]))
        yield
    if len(seen) == len(items):
        # Freeing a hundred thousand keys takes tens of milliseconds too.
        while seen:
            for _ in range(min(PIECE_COUNT, len(seen))):
                seen.pop()
            yield
        return items, frozenset()
    counts: Counter[Key] = Counter()
    first: dict[Key, Item] = {}
    for at in range(0, len(items), PIECE_COUNT):
        some = items[at : at + PIECE_COUNT]
        keys = list(map(key, some))
        counts.update(keys)
        first.update(zip(keys, some, strict=True))
        yield
    return first.values(), frozenset(each for each, count in counts.items() if count > 1)


def distinct_in_steps(keys: Iterable[Key]) -> Generator[None, None, Collection[Key]]:
    """The distinct keys, in order of first occurrence; it yields to the loop regularly."""
    left = iter(keys)
    seen: dict[Key, None] = {}
    while some := list(islice(left, PIECE_COUNT)):
        seen.update(dict.fromkeys(some))
        yield
    return seen.keys()


def merged(topics: Iterable[tuple[str, Iterable[int]]]) -> dict[str, list[int]]:
    """The distinct topics and partitions: no result is repeated a million times."""
    found: dict[str, dict[int, None]] = {}
    for name, partitions in topics:
        found.setdefault(name, {}).update(dict.fromkeys(partitions))
    return {name: list(partitions) for name, partitions in found.items()}
