"""The assignor of share groups: every partition to some members, every member as many as others.

Topics that the same members read are dealt out together. Each of their partitions goes to as many
members as there are members for each partition, rounded up, and every member gets as many of these
as every other, or one less. A member keeps what it had as far as that allows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from rockgate.gateway.kafka.groups.consumer.member import Partitions, TopicId

SIMPLE: Final = "simple"
PIECE: Final = 100
Slot: TypeAlias = tuple[TopicId, int]
Target: TypeAlias = dict[str, Partitions]


class Reader(NamedTuple):
    """A member, as far as the assignor is concerned."""

    topics: frozenset[TopicId]
    """The topics that it reads and that exist."""
    had: Partitions


def assign(
    counts: Mapping[TopicId, int], members: Mapping[str, Reader]
) -> Generator[None, None, Target]:
    """Compute what every member reads; yields between pieces of work."""
    readers: dict[TopicId, list[str]] = {}
    for at, member_id in enumerate(sorted(members)):
        for topic_id in members[member_id].topics & counts.keys():
            readers.setdefault(topic_id, []).append(member_id)
        if at % PIECE == PIECE - 1:
            yield
    alike: dict[tuple[str, ...], list[TopicId]] = {}
    for at, (topic_id, ids) in enumerate(readers.items()):
        alike.setdefault(tuple(ids), []).append(topic_id)
        if at % PIECE == PIECE - 1:
            yield
    given: dict[str, set[Slot]] = {member_id: set() for member_id in members}
    for together, topic_ids in alike.items():
        slots = [(each, number) for each in sorted(topic_ids) for number in range(counts[each])]
        dealt = yield from _deal(together, slots, members)
        for member_id, some in dealt.items():
            given[member_id] |= some
    target: Target = {}
    for at, (member_id, some) in enumerate(given.items()):
        target[member_id] = _by_topic(some)
        if at % PIECE == PIECE - 1:
            yield
    return target


def _by_topic(slots: Iterable[Slot]) -> Partitions:
    found: dict[TopicId, set[int]] = {}
    for topic_id, number in slots:
        found.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}


def _deal(
    ids: Sequence[str], slots: Sequence[Slot], members: Mapping[str, Reader]
) -> Generator[None, None, dict[str, set[Slot]]]:
    """Deal the partitions of topics that the same members read."""
    if not slots:
        return {}
    sharing = -(-len(ids) // len(slots))
    least, more = divmod(sharing * len(slots), len(ids))
    left = dict.fromkeys(slots, sharing)
    dealt: dict[str, set[Slot]] = {}
    for at, member_id in enumerate(ids):
        retained: set[Slot] = set()
        # Who has one more now may keep it, as long as not too many do.
        limit = least + (more > 0)
        for slot in _retained(members[member_id].had, left):
            if len(retained) < limit:
                retained.add(slot)
                left[slot] -= 1
        more -= len(retained) > least
        dealt[member_id] = retained
        if at % PIECE == PIECE - 1:
            yield
    open_slots = [slot for slot, count in left.items() for _ in range(count)]
    open_slots.reverse()
    for at, member_id in enumerate(ids):
        wanted = least - len(dealt[member_id])
        if wanted >= 0 and more > 0:
            wanted, more = wanted + 1, more - 1
        for _ in range(wanted):
            _fill(member_id, open_slots, dealt)
        if at % PIECE == PIECE - 1:
            yield
    return dealt


def _retained(had: Partitions, left: Mapping[Slot, int]) -> list[Slot]:
    """What a member had and may keep, in order."""
    return [
        slot
        for topic_id, numbers in sorted(had.items())
        for slot in ((topic_id, number) for number in sorted(numbers))
        if left.get(slot, 0) > 0
    ]


def _fill(member_id: str, open_slots: list[Slot], dealt: dict[str, set[Slot]]) -> None:
    """Give a member an open partition that it does not have, if need be in exchange."""
    mine = dealt[member_id]
    for at in range(len(open_slots) - 1, -1, -1):
        if open_slots[at] not in mine:
            mine.add(open_slots.pop(at))
            return
    spare = open_slots.pop()
    for theirs in dealt.values():
        if spare not in theirs:
            other = next((slot for slot in sorted(theirs) if slot not in mine), None)
            if other is not None:
                theirs.remove(other)
                theirs.add(spare)
                mine.add(other)
                return
    raise AssertionError("a partition has fewer readers than there are members")
