"""The assignor of share groups, for any members and topics."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from rockgate.gateway.kafka.groups.consumer.member import Partitions
from rockgate.gateway.kafka.groups.share.assignor import Reader, Target, assign

TOPICS = [bytes([number]) * 16 for number in range(4)]
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 7))


def run(counts: Mapping[bytes, int], members: Mapping[str, Reader]) -> Target:
    work = assign(counts, members)
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # the generator's result


def alike(count: int, topics: frozenset[bytes], had: Target | None = None) -> dict[str, Reader]:
    names = [f"m{number}" for number in range(count)]
    return {name: Reader(topics, (had or {}).get(name, {})) for name in names}


def size(held: Partitions) -> int:
    return sum(map(len, held.values()))


@given(COUNTS, st.integers(1, 20))
def test_members_that_read_the_same_share_evenly(counts: dict[bytes, int], count: int) -> None:
    members = alike(count, frozenset(counts))
    target = run(counts, members)
    total = sum(counts.values())
    if not total:
        assert all(not held for held in target.values())
        return
    sharing = -(-count // total)
    readers: dict[tuple[bytes, int], int] = {}
    for held in target.values():
        for topic_id, numbers in held.items():
            for number in numbers:
                readers[topic_id, number] = readers.get((topic_id, number), 0) + 1
    assert len(readers) == total, "every partition has a reader"
    assert set(readers.values()) == {sharing}
    sizes = [size(held) for held in target.values()]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(1, total // count) and (count < total or min(sizes) >= 1)


@given(COUNTS, st.integers(1, 12), st.integers(1, 12))
def test_nothing_moves_that_need_not(counts: dict[bytes, int], before: int, after: int) -> None:
    topics = frozenset(counts)
    first = run(counts, alike(before, topics))
    again = run(counts, alike(before, topics, first))
    assert again == first
    second = run(counts, alike(after, topics, first))
    if after >= before and sum(counts.values()) >= after:
        for name, held in first.items():
            kept = sum(
                len(numbers & second[name].get(t, frozenset())) for t, numbers in held.items()
            )
            assert kept == min(size(held), size(second[name]))


@given(
    COUNTS,
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from(TOPICS)), min_size=1
    ),
)
def test_every_member_gets_only_what_it_reads_and_every_read_partition_is_given(
    counts: dict[bytes, int], read: dict[str, frozenset[bytes]]
) -> None:
    target = run(counts, {name: Reader(topics, {}) for name, topics in read.items()})
    given: set[tuple[bytes, int]] = set()
    for name, held in target.items():
        assert held.keys() <= read[name]
        given |= {(topic_id, each) for topic_id, numbers in held.items() for each in numbers}
    wanted = frozenset().union(*read.values())
    assert given == {(t, n) for t, count in counts.items() if t in wanted for n in range(count)}
