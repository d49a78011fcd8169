"""The sticky task assignor: a pure function from members and tasks to a target for every member.

    active    stays with its member within the member's quota; else goes to one that has had it as
              a standby; else to the process with the lowest load
    standby   stays where its state is, within the quota; else goes to the process with the lowest
              load that does not have the task
    warm-up   none, as in Kafka 4.3

The load of a process is its number of tasks by its number of members. It yields between pieces of
work, so that a large group does not hold the event loop. Racks and tags are known and not used.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Mapping
from typing import Final, NamedTuple, TypeAlias

from rockgate.gateway.kafka.groups.streams.member import NO_TASKS, StreamsTasks

PIECE: Final = 500
"""Tasks, or members, between two yields."""


class TaskShape(NamedTuple):
    """The tasks of one subtopology."""

    tasks: int
    is_stateful: bool


class Assignee(NamedTuple):
    """A member, as the assignor sees it."""

    process_id: str
    previous: StreamsTasks = NO_TASKS
    """Its previous target."""


Shapes: TypeAlias = Mapping[str, TaskShape]
Assignees: TypeAlias = Mapping[str, Assignee]
TaskTarget: TypeAlias = dict[str, StreamsTasks]
TaskWork: TypeAlias = Generator[None, None, TaskTarget]
_Task: TypeAlias = tuple[str, int]


class _Quota:
    """How many tasks a member may have; when one is full, those that are left share the rest."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = self._share()

    def count(self, held: int) -> None:
        """A member has that many tasks now."""
        if held == self.each:
            self._members -= 1
            self._tasks -= held
            self.each = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _ProcessLoad:
    """The members of one process, and what they are given."""

    __slots__ = ("_heap", "counts", "index", "tasks", "total")

    def __init__(self, index: int) -> None:
        self.index = index
        self.counts: dict[str, int] = {}
        self.tasks: set[_Task] = set()
        self.total = 0
        self._heap: list[tuple[int, str]] | None = None

    @property
    def load(self) -> float:
        return self.total / len(self.counts)

    def least(self) -> str:
        """The member with the fewest tasks."""
        if self._heap is None:
            self._heap = [(count, member_id) for member_id, count in self.counts.items()]
            heapq.heapify(self._heap)
        while self._heap[0][0] != self.counts[self._heap[0][1]]:
            member_id = self._heap[0][1]
            heapq.heapreplace(self._heap, (self.counts[member_id], member_id))
        return self._heap[0][1]


class _Assigning:
    """One assignment while it is computed."""

    def __init__(self, shapes: Shapes, members: Assignees, standbys: int) -> None:
        self.members = members
        self.standbys = standbys
        self.active: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in members}
        self.standby: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in members}
        self.processes: dict[str, _ProcessLoad] = {}
        for member_id, member in members.items():
            process = self.processes.get(member.process_id)
            if process is None:
                process = _ProcessLoad(len(self.processes))
                self.processes[member.process_id] = process
            process.counts[member_id] = 0
        actives = sum(shape.tasks for shape in shapes.values())
        stateful = sum(shape.tasks for shape in shapes.values() if shape.is_stateful)
        self.active_quota = _Quota(actives, len(members))
        self.quota = _Quota(actives + stateful * standbys, len(members))
        self.was_active: dict[_Task, str] = {}
        self.was_standby: dict[_Task, list[str]] = {}

    def recall(self) -> Generator[None, None, None]:
        """Who has had which task."""
        for at, (member_id, member) in enumerate(self.members.items()):
            for subtopology, parts in member.previous.active.items():
                for partition in parts:
                    self.was_active[subtopology, partition] = member_id
            for subtopology, parts in member.previous.standby.items():
                for partition in parts:
                    self.was_standby.setdefault((subtopology, partition), []).append(member_id)
            if not at % (PIECE // 10):
                yield

    def process_of(self, member_id: str) -> _ProcessLoad:
        return self.processes[self.members[member_id].process_id]

    def give(self, member_id: str, task: _Task, *, is_active: bool) -> None:
        process = self.process_of(member_id)
        process.tasks.add(task)
        process.total += 1
        process.counts[member_id] += 1
        given = self.active if is_active else self.standby
        given[member_id].setdefault(task[0], set()).add(task[1])
        if is_active:
            self.active_quota.count(process.counts[member_id])
        self.quota.count(process.counts[member_id])

    def least_loaded(self, candidates: list[str], task: _Task) -> str | None:
        """The candidate whose process, and who itself, has least, and does not have the task."""
        free = [each for each in candidates if task not in self.process_of(each).tasks]
        return min(
            free,
            key=lambda each: (self.process_of(each).load, self.process_of(each).counts[each]),
            default=None,
        )

    def count(self, member_id: str) -> int:
        return self.process_of(member_id).counts[member_id]

    def assign_active(self, tasks: list[_Task]) -> Generator[None, None, None]:
        # Tasks of one partition belong together, so they are decided together.
        tasks.sort(key=lambda task: (task[1], task[0]))
        left = []
        for at, task in enumerate(tasks):
            member_id = self.was_active.get(task)
            if member_id is not None and self.count(member_id) < self.active_quota.each:
                self.give(member_id, task, is_active=True)
            else:
                left.append(task)
            if at % PIECE == PIECE - 1:
                yield
        rest = []
        for at, task in enumerate(left):
            member_id = self.least_loaded(self.was_standby.get(task, []), task)
            if member_id is not None and self.count(member_id) < self.active_quota.each:
                self.give(member_id, task, is_active=True)
            else:
                rest.append(task)
            if at % PIECE == PIECE - 1:
                yield
        # New tasks of one subtopology are spread over all processes.
        rest.sort()
        heap = self.heap()
        for at, task in enumerate(rest):
            process = heap[0][2]
            self.give(process.least(), task, is_active=True)
            heapq.heapreplace(heap, (process.load, process.index, process))
            if at % PIECE == PIECE - 1:
                yield

    def heap(self) -> list[tuple[float, int, _ProcessLoad]]:
        found = [(each.load, each.index, each) for each in self.processes.values()]
        heapq.heapify(found)
        return found

    def assign_standby(self, tasks: list[_Task]) -> Generator[None, None, None]:
        tasks.sort(key=lambda task: (task[1], task[0]), reverse=True)
        left: list[tuple[_Task, int]] = []
        for at, task in enumerate(tasks):
            count = self.standbys
            while count and (member_id := self.standby_again(task)) is not None:
                self.give(member_id, task, is_active=False)
                count -= 1
            if count:
                left.append((task, count))
            if at % PIECE == PIECE - 1:
                yield
        left.sort(reverse=True)
        heap = self.heap()
        for at, (task, count) in enumerate(left):
            self.spread(heap, task, count)
            if at % (PIECE // 10) == PIECE // 10 - 1:
                yield

    def standby_again(self, task: _Task) -> str | None:
        """Who has the state of a task already and may have it as a standby."""
        member_id = self.was_active.get(task)
        if member_id is None or not self.may_have(member_id, task):
            member_id = self.least_loaded(self.was_standby.get(task, []), task)
        return member_id if member_id is not None and self.may_have(member_id, task) else None

    def may_have(self, member_id: str, task: _Task) -> bool:
        process = self.process_of(member_id)
        return task not in process.tasks and process.counts[member_id] < self.quota.each

    def spread(self, heap: list[tuple[float, int, _ProcessLoad]], task: _Task, count: int) -> None:
        """Give copies to the processes with the lowest loads; fewer if there are too few."""
        passed = []
        while heap and count:
            process = heapq.heappop(heap)[2]
            if task not in process.tasks:
                self.give(process.least(), task, is_active=False)
                count -= 1
            passed.append(process)
        for process in passed:
            heapq.heappush(heap, (process.load, process.index, process))

    def target(self, member_id: str) -> StreamsTasks:
        return StreamsTasks(
            {each: frozenset(parts) for each, parts in self.active[member_id].items()},
            {each: frozenset(parts) for each, parts in self.standby[member_id].items()},
        )


def sticky(shapes: Shapes, members: Assignees, standbys: int) -> TaskWork:
    """Assign every task to one member, and copies of those with a state to others."""
    if not members:
        return {}
    assigning = _Assigning(shapes, members, standbys)
    yield from assigning.recall()
    tasks = [(each, at) for each, shape in shapes.items() for at in range(shape.tasks)]
    yield
    yield from assigning.assign_active(tasks)
    if standbys:
        stateful = [task for task in tasks if shapes[task[0]].is_stateful]
        yield from assigning.assign_standby(stateful)
    target: TaskTarget = {}
    for at, member_id in enumerate(members):
        target[member_id] = assigning.target(member_id)
        if at % (PIECE // 10) == PIECE // 10 - 1:
            yield
    return target
