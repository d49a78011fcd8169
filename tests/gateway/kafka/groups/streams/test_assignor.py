"""The sticky task assignor: properties that hold for whatever members and tasks."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.gateway.kafka.groups.streams.assignor import (
    Assignee,
    Assignees,
    Shapes,
    TaskShape,
    TaskTarget,
    sticky,
)
from rockgate.gateway.kafka.groups.streams.member import StreamsTasks

EXAMPLES = settings(deadline=None, max_examples=budget("task_assignments"))
SHAPES = st.dictionaries(
    st.sampled_from("abc"), st.builds(TaskShape, st.integers(1, 7), st.booleans()), min_size=1
)
PROCESSES = st.lists(st.integers(1, 3), min_size=1, max_size=5)
STANDBYS = st.integers(0, 2)


def assign(shapes: Shapes, members: Assignees, standbys: int = 0) -> TaskTarget:
    work = sticky(shapes, members, standbys)
    while True:
        try:
            next(work)
        except StopIteration as done:
            target: TaskTarget = done.value
            return target


def members_of(processes: list[int]) -> dict[str, Assignee]:
    """Members by the number that each process has."""
    return {
        f"m{process}.{at}": Assignee(f"p{process}")
        for process, count in enumerate(processes)
        for at in range(count)
    }


def again(members: Assignees, target: TaskTarget) -> dict[str, Assignee]:
    return {
        each: Assignee(member.process_id, target.get(each, StreamsTasks()))
        for each, member in members.items()
    }


def pairs(kind: object) -> list[tuple[str, int]]:
    assert isinstance(kind, dict) or hasattr(kind, "items")
    return [(subtopology, at) for subtopology, parts in kind.items() for at in parts]


def owners(target: TaskTarget) -> dict[tuple[str, int], str]:
    return {task: member_id for member_id, each in target.items() for task in pairs(each.active)}


@EXAMPLES
@given(SHAPES, PROCESSES, STANDBYS)
def test_every_task_is_active_once_and_no_process_has_a_task_twice(
    shapes: dict[str, TaskShape], processes: list[int], standbys: int
) -> None:
    members = members_of(processes)
    target = assign(shapes, members, standbys)
    tasks = [(each, at) for each, shape in shapes.items() for at in range(shape.tasks)]
    assert sorted(task for each in target.values() for task in pairs(each.active)) == sorted(tasks)
    for process in set(members[each].process_id for each in members):
        mine = [
            task
            for each, given_ in target.items()
            if members[each].process_id == process
            for kind in (given_.active, given_.standby)
            for task in pairs(kind)
        ]
        assert len(mine) == len(set(mine))
    copies = Counter(task for each in target.values() for task in pairs(each.standby))
    wanted = min(standbys, len(processes) - 1)
    for task in tasks:
        assert copies[task] == (wanted if shapes[task[0]].is_stateful else 0)
    assert not any(each.warmup for each in target.values())


@EXAMPLES
@given(SHAPES, st.integers(1, 6))
def test_members_of_their_own_processes_have_equally_many(
    shapes: dict[str, TaskShape], count: int
) -> None:
    target = assign(shapes, members_of([1] * count))
    counts = [len(pairs(each.active)) for each in target.values()]
    assert max(counts) - min(counts) <= 1


@EXAMPLES
@given(SHAPES, PROCESSES, STANDBYS)
def test_nothing_moves_when_nothing_changes(
    shapes: dict[str, TaskShape], processes: list[int], standbys: int
) -> None:
    members = members_of(processes)
    target = assign(shapes, members, standbys)
    assert owners(assign(shapes, again(members, target), standbys)) == owners(target)


@EXAMPLES
@given(SHAPES, st.integers(2, 6))
def test_only_what_a_leaver_had_moves(shapes: dict[str, TaskShape], count: int) -> None:
    members = members_of([1] * count)
    before = assign(shapes, members)
    left = dict(list(members.items())[1:])
    after = assign(shapes, again(left, before))
    was, now = owners(before), owners(after)
    moved = {task for task in was if was[task] != now[task]}
    assert moved == {task for task in was if was[task] not in left}
    counts = [len(pairs(each.active)) for each in after.values()]
    assert max(counts) - min(counts) <= 1


@EXAMPLES
@given(SHAPES, st.integers(1, 5))
def test_a_newcomer_gets_its_share_and_no_other_task_moves(
    shapes: dict[str, TaskShape], count: int
) -> None:
    members = members_of([1] * count)
    before = assign(shapes, members)
    more = members | {"new": Assignee("new")}
    after = assign(shapes, again(more, before))
    was, now = owners(before), owners(after)
    assert all(now[task] in (was[task], "new") for task in was)
    counts = [len(pairs(each.active)) for each in after.values()]
    assert max(counts) - min(counts) <= 1


def test_a_standby_becomes_active_where_its_state_is() -> None:
    shapes = {"a": TaskShape(4, is_stateful=True)}
    members = members_of([1, 1, 1])
    before = assign(shapes, members, 1)
    gone, *left = members
    after = assign(shapes, again({each: members[each] for each in left}, before), 1)
    heirs = {task: owners(after)[task] for task in pairs(before[gone].active)}
    assert heirs, "the one that is gone had tasks"
    assert any(task in pairs(before[heir].standby) for task, heir in heirs.items())


def test_a_process_with_more_members_gets_more() -> None:
    target = assign({"a": TaskShape(6, is_stateful=False)}, members_of([2, 1]))
    assert [len(pairs(each.active)) for each in target.values()] == [2, 2, 2]


def test_without_members_there_is_no_target() -> None:
    assert assign({"a": TaskShape(2, is_stateful=False)}, {}) == {}
