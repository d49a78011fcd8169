"""The records of progress, in memory, in changes and in snapshots."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.journals import change_at

from rockgate.store.errors import EntryTooLarge, InvalidGroup, OffsetOutOfRange, UnknownQueue
from rockgate.store.progress.records import (
    METADATA_SIZE_MAX,
    OFFSET_MAX,
    PROGRESS_TOPIC,
    Commit,
    Committed,
    Held,
    ProgressRecordKind,
    Removed,
    check_group,
    decode,
    encode_commits,
    encode_removals,
    is_same_commit,
    pack_record,
    position_key,
    unpack_record,
)
from rockgate.store.state.fold import CHANGE_SIZE_MAX

ID = bytes(range(1, 17))
POSITIONS = st.integers(0, (1 << 63) - 1)
examples = settings(max_examples=budget("property_examples"), deadline=None)


@examples
@given(
    offset=st.integers(0, OFFSET_MAX),
    leader_epoch=st.integers(-1, (1 << 31) - 1),
    metadata=st.text(),
    expire_ms=st.integers(-1, 1 << 50),
    position=POSITIONS,
)
def test_a_record_reads_back_as_it_was_committed(
    offset: int, leader_epoch: int, metadata: str, expire_ms: int, position: int
) -> None:
    bare = pack_record(Commit(ID, 0, offset, leader_epoch, metadata, expire_ms), 1234)
    expected = Committed(offset, leader_epoch, metadata, 1234, expire_ms)
    assert unpack_record(bare, 0) == expected
    assert unpack_record(position_key(position) + bare) == expected


@examples
@given(older=POSITIONS, newer=POSITIONS, metadata=st.text(max_size=3))
def test_comparing_a_record_with_a_position_compares_their_age(
    older: int, newer: int, metadata: str
) -> None:
    record = position_key(older) + pack_record(Commit(ID, 0, 7, metadata=metadata), 0)
    assert (record < position_key(newer)) == (older < newer)


def test_a_commit_says_the_same_whatever_its_time_and_place_in_the_log() -> None:
    record = position_key(5) + pack_record(Commit(ID, 0, 7, 1, "m"), 1000)
    assert is_same_commit(record, pack_record(Commit(ID, 0, 7, 1, "m"), 2000))
    for other in (
        Commit(ID, 0, 8, 1, "m"),
        Commit(ID, 0, 7, 2, "m"),
        Commit(ID, 0, 7, 1, "n"),
        Commit(ID, 0, 7, 1, "m", 5),
    ):
        assert not is_same_commit(record, pack_record(other, 1000))


def test_commits_and_removals_read_back_as_they_were_written() -> None:
    held_commits = [Held("g", ID, {0: b"zero", 7: b"seven"}), Held("h", ID, {1: b"one"})]
    [body] = encode_commits(held_commits)
    assert decode(change_at(0, PROGRESS_TOPIC, body)) == (ProgressRecordKind.COMMIT, held_commits)
    removals = [Removed("g"), Removed("g", ID), Removed("h", ID, [1, 2])]
    [body] = encode_removals(removals)
    assert decode(change_at(0, PROGRESS_TOPIC, body)) == (ProgressRecordKind.REMOVE, removals)


def test_commits_too_large_for_one_change_are_several_that_fit() -> None:
    held_commits = [
        Held("g", ID, dict.fromkeys(range(50_000), b"x" * 40)),
        Held("h", ID, {queue_id: b"x" * 30_000 for queue_id in range(100)}),
    ]
    bodies = list(encode_commits(held_commits))
    assert max(map(len, bodies)) <= CHANGE_SIZE_MAX
    found: dict[str, dict[int, bytes]] = {"g": {}, "h": {}}
    for body in bodies:
        for held in decode(change_at(0, PROGRESS_TOPIC, body))[1]:
            found[held.group].update(held.queues)
    assert found == {held.group: held.queues for held in held_commits}


def test_removals_too_large_for_one_change_are_several_that_fit() -> None:
    queue_ids = list(range(70_000, 100_000)) * 12
    bodies = list(encode_removals([Removed("g", ID, queue_ids), Removed("h")]))
    assert len(bodies) > 1
    assert max(map(len, bodies)) <= CHANGE_SIZE_MAX
    found = [item for body in bodies for item in decode(change_at(0, PROGRESS_TOPIC, body))[1]]
    assert [q for item in found for q in item.queue_ids or ()] == queue_ids
    assert found[-1] == Removed("h")


def test_what_no_record_can_hold_is_refused() -> None:
    with pytest.raises(EntryTooLarge, match="Metadata of a committed offset"):
        pack_record(Commit(ID, 0, 0, metadata="é" * (METADATA_SIZE_MAX // 2 + 1)), 0)
    for offset in (-1, 1 << 63):
        with pytest.raises(OffsetOutOfRange):
            pack_record(Commit(ID, 0, offset), 0)
    for queue_id in (-1, 100_000):
        with pytest.raises(UnknownQueue):
            pack_record(Commit(ID, queue_id, 0), 0)


def test_a_group_name_is_text_of_bounded_length() -> None:
    for group in ("", "g", "%RETRY%g", "组" * 333, "x" * 1_000):
        check_group(group)
    for group in ("x" * 1_001, "组" * 334, "\ud800"):
        with pytest.raises(InvalidGroup):
            check_group(group)
