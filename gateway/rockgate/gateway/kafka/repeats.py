"""Items that a request names more than once: they are looked at once, and most APIs refuse them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def once(
    items: Sequence[Item], key: Callable[[Item], Key]
) -> tuple[Collection[Item], AbstractSet[Key]]:
    """Each item once, in the order they first came, and the keys that came more than once."""
    keys = list(map(key, items))
    if len(set(keys)) == len(keys):
        # Nearly always. The loop is held meanwhile, so what comes after is for the rest.
        return items, frozenset()
    repeated = frozenset(each for each, count in Counter(keys).items() if count > 1)
    return dict(zip(keys, items, strict=True)).values(), repeated


def merged(topics: Iterable[tuple[str, Iterable[int]]]) -> dict[str, list[int]]:
    """Each topic and each of its partitions once: nobody gets one answer a million times."""
    found: dict[str, dict[int, None]] = {}
    for name, partitions in topics:
        found.setdefault(name, {}).update(dict.fromkeys(partitions))
    return {name: list(partitions) for name, partitions in found.items()}
