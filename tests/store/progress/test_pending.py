"""Commits that wait to be appended."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.store.progress.pending import Pending
from rockgate.store.progress.records import Held

A, B = bytes([1] * 16), bytes([2] * 16)


def drained(pending: Pending, count: int = 1 << 30) -> dict[tuple[str, bytes, int], bytes]:
    return {
        (held.group, held.topic_id, queue_id): record
        for held in pending.take(count)
        for queue_id, record in held.queues.items()
    }


def test_the_newest_record_of_a_key_is_the_one_that_waits() -> None:
    pending = Pending()
    pending.put("g", A, 0, b"old")
    pending.put("g", A, 0, b"new")
    assert pending.find("g", A, 0) == b"new"
    pending.begin_round()
    assert drained(pending) == {("g", A, 0): b"new"}
    assert not pending


def test_what_comes_during_a_round_waits_for_the_next_one() -> None:
    pending = Pending()
    pending.put("g", A, 0, b"first")
    pending.begin_round()
    pending.put("g", A, 1, b"second")
    assert drained(pending) == {("g", A, 0): b"first"}
    assert (pending.is_draining, bool(pending)) == (False, True)


def test_a_record_that_the_round_has_not_reached_is_replaced_in_it() -> None:
    pending = Pending()
    pending.put("g", A, 0, b"old")
    pending.begin_round()
    pending.put("g", A, 0, b"new")
    assert drained(pending) == {("g", A, 0): b"new"}
    assert not pending


def test_a_round_is_taken_in_parts_of_a_given_size() -> None:
    pending = Pending()
    expected = {}
    for group in "gh":
        for topic_id in (A, B):
            for queue_id in range(7):
                pending.put(group, topic_id, queue_id, b"%d" % queue_id)
                expected[group, topic_id, queue_id] = b"%d" % queue_id
    pending.begin_round()
    parts = []
    while pending.is_draining:
        parts.append(drained(pending, 5))
    assert [len(part) for part in parts] == [5, 5, 5, 5, 5, 3]
    assert {key: record for part in parts for key, record in part.items()} == expected


def test_what_could_not_be_appended_waits_again_with_the_rest_of_its_round() -> None:
    pending = Pending()
    for queue_id in range(3):
        pending.put("g", A, queue_id, b"%d" % queue_id)
    pending.begin_round()
    pending.give_up_round(pending.take(1))
    assert not pending.is_draining
    assert [pending.find("g", A, queue_id) for queue_id in range(3)] == [b"0", b"1", b"2"]


def test_queues_topics_and_groups_are_forgotten_wherever_they_wait() -> None:
    pending = Pending()
    for is_draining in (True, False):
        base = 0 if is_draining else 10
        for group in "gh":
            for topic_id in (A, B):
                pending.put(group, topic_id, base, b"x")
                pending.put(group, topic_id, base + 1, b"y")
        if is_draining:
            pending.begin_round()
    pending.drop("g", A, (0, 10))
    assert {(topic_id, queue_id) for topic_id, queue_id, _ in pending.of("g")} == {
        (A, 1),
        (A, 11),
        *((B, queue_id) for queue_id in (0, 1, 10, 11)),
    }
    pending.drop("g", A)
    pending.drop_topics([B, bytes(16)])
    assert list(pending.groups()) == ["h"]
    assert {topic_id for topic_id, _, _ in pending.of("h")} == {A}
    pending.drop("h")
    assert not pending


OPERATIONS = st.tuples(
    st.sampled_from(["put", "drop", "begin", "take", "give up"]),
    st.sampled_from("gh"),
    st.sampled_from([A, B]),
    st.integers(0, 2),
)


@settings(max_examples=budget("property_examples"), deadline=None)
@given(st.lists(OPERATIONS, max_size=40))
def test_a_key_is_in_one_place_and_the_newest_record_wins(
    operations: list[tuple[str, str, bytes, int]],
) -> None:
    pending = Pending()
    model: dict[tuple[str, bytes, int], bytes] = {}
    for number, (what, group, topic_id, queue_id) in enumerate(operations):
        if what == "put":
            pending.put(group, topic_id, queue_id, b"%d" % number)
            model[group, topic_id, queue_id] = b"%d" % number
        elif what == "drop":
            pending.drop(group, topic_id, (queue_id,))
            model.pop((group, topic_id, queue_id), None)
        elif what == "begin" and not pending.is_draining:
            pending.begin_round()
        else:
            held_commits: list[Held] = pending.take(2)
            if what == "give up":
                pending.give_up_round(held_commits)
                continue
            for held in held_commits:
                for taken, record in held.queues.items():
                    assert model.pop((held.group, held.topic_id, taken)) == record
    found = [(group, *rest) for group in pending.groups() for rest in pending.of(group)]
    assert sorted(found) == sorted((*key, record) for key, record in model.items())
