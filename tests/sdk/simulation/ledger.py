"""What a group has done so far, and the promises that it is held to at every step.

    a commit       never passes a message that is neither consumed nor taken back by a broker
    in order       a message begins when all before it in its queue are settled, one member at a
                   time, and comes again in place only if it failed
    concurrently   a member that holds a queue begins a message of it once, unless it failed
    at the end     every message was consumed, or is a dead letter

Each breach is raised where it happens, with what has happened to that queue lately.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Final

from tests.sdk.simulation.cluster import Cluster, Stored

from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.results import Queue

LOCK_S_MAX: Final = 30.0
"""How long a member consumes in order by a lock that was not renewed. A broker keeps it for twice
as long, so a listener that ends sooner than this is alone."""
BROKER_LOCK_S: Final = 60.0
HISTORY: Final = 60


@dataclass(slots=True)
class _Tenure:
    """One member's time with one queue: from where it asked where to begin."""

    number: int
    begun: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A listener that runs."""

    member: str
    message: Stored
    began_s: float
    tenure: _Tenure


class Ledger:
    """The messages of one group."""

    def __init__(self, *, is_orderly: bool) -> None:
        self._is_orderly = is_orderly
        self.cluster: Cluster | None = None
        self.sent: dict[int, Stored] = {}
        self.done: Counter[int] = Counter()
        self._settled: defaultdict[Queue, set[int]] = defaultdict(set)
        self._resent: set[int] = set()
        self._prefix: Counter[Queue] = Counter()
        self._tenures: dict[tuple[str, Queue], _Tenure] = {}
        self._running: defaultdict[Queue, list[Run]] = defaultdict(list)
        self._crashed_s: dict[str, float] = {}
        self._moved_s: dict[Queue, float] = {}
        """When an operator set the group back."""
        self._history: defaultdict[Queue | None, deque[str]] = defaultdict(
            lambda: deque(maxlen=HISTORY)
        )
        self.breaches: list[str] = []

    # What brokers see

    def taken_up(self, queue: Queue, by: str) -> None:
        """A tenure begins."""
        before = self._tenures.get((by, queue))
        number = before.number + 1 if before else 1
        self._tenures[by, queue] = _Tenure(number)
        self.note(queue, f"{by} asks where to begin")

    def committed(self, queue: Queue, offset: int, before: int | None, by: str) -> None:
        """Nothing below may be unfinished."""
        self.note(queue, f"{by} commits {offset}, was {before}")
        if offset > self._is_settled_to(queue):
            self._breach(queue, f"{by} commits {offset} past the unfinished {self._prefix[queue]}")
        if (
            self._is_orderly
            and before is not None
            and offset < before
            and not self._may_go_back(queue)
        ):
            self._breach(queue, f"{by} commits {offset} after {before}")

    def returned(self, message: Stored) -> None:
        """A broker has it again."""
        self.note(message.queue, f"{message.number} at {message.offset} is taken back")
        if message.position:
            self._settled[message.queue].add(message.offset)
        else:
            self._resent.add(message.number)

    def crashed(self, broker: str) -> None:
        """Locks are gone, and so are commits of the last seconds."""
        self._crashed_s[broker] = _now_s()
        self.note(None, f"{broker} crashes")

    def moved(self, queue: Queue, offset: int) -> None:
        """An operator sets the group back."""
        self._moved_s[queue] = _now_s()
        self.note(queue, f"is set back to {offset}")

    # What members do

    def begin(self, member: str, message: Stored) -> Run:
        """A listener begins."""
        queue, offset = message.queue, message.offset
        tenure = self._tenures[member, queue]
        self.note(queue, f"{member} begins {message.number} at {offset}")
        if offset in tenure.begun and offset not in tenure.failed:
            self._breach(queue, f"{member} begins {offset} again, which it has not failed")
        if self._is_orderly:
            self._check_order(member, tenure, message)
        tenure.begun.add(offset)
        tenure.failed.discard(offset)
        run = Run(member, message, _now_s(), tenure)
        self._running[queue].append(run)
        return run

    def end(self, run: Run, *, is_done: bool) -> None:
        """It has ended, in whatever way."""
        queue = run.message.queue
        self._running[queue].remove(run)
        self.note(queue, f"{run.member} ends {run.message.offset}, {is_done=}")
        if is_done:
            self.done[run.message.number] += 1
            self._settled[queue].add(run.message.offset)
        else:
            run.tenure.failed.add(run.message.offset)

    def hung(self, run: Run) -> None:
        """It takes long enough to be sent back, or repeated if no broker accepts it."""
        run.tenure.failed.add(run.message.offset)

    # Questions

    def unfinished(self) -> list[int]:
        """Messages that are neither consumed nor dead letters."""
        dead = self.dead()
        return [number for number in self.sent if not self.done[number] and number not in dead]

    def dead(self) -> set[int]:
        """Dead letters."""
        assert self.cluster is not None
        found: set[int] = set()
        for queue in self.cluster.queues("%DLQ%"):
            found |= {each.number for each in self.cluster.log(queue).stored}
        return found

    def story(self, queue: Queue) -> str:
        """What has happened to a queue lately, and to all."""
        lines = sorted([*self._history[queue], *self._history[None]])
        return "\n".join(lines[-HISTORY:])

    def story_of(self, number: int) -> str:
        """The same of the queue that a message was sent to, and of its broker's retry topic."""
        queue = self.sent[number].queue
        retries = [each for each in self._history if each and each.topic.startswith(RETRY_PREFIX)]
        found = {line for each in [queue, *retries] for line in self._history[each]}
        return "\n".join(sorted([*found, *self._history[None]]))

    def note(self, queue: Queue | None, what: str) -> None:
        """Remember it for the report."""
        where = f"{queue.topic}/{queue.broker}/{queue.id} " if queue else ""
        self._history[queue].append(f"{_now_s():10.3f} {where}{what}")

    # Private

    def _check_order(self, member: str, tenure: _Tenure, message: Stored) -> None:
        queue, offset = message.queue, message.offset
        if offset > self._is_settled_to(queue):
            self._breach(queue, f"{member} begins {offset} before {self._prefix[queue]} is settled")
        assert self.cluster is not None
        known = self.cluster.brokers[queue.broker].offsets.get(queue, 0)
        if offset < known and not self._may_go_back(queue):
            self._breach(queue, f"{member} begins {offset}, and the group is at {known}")
        later = [each for each in tenure.begun if each > offset]
        if later:
            self._breach(queue, f"{member} begins {offset} behind {max(later)}")
        for run in self._running[queue]:
            crashed_s = self._crashed_s.get(queue.broker)
            is_lock_gone = crashed_s is not None and run.began_s <= crashed_s + LOCK_S_MAX
            if run.member != member and not is_lock_gone and _now_s() < run.began_s + LOCK_S_MAX:
                self._breach(queue, f"{member} begins {offset} while {run.member} runs")
            if run.member == member:
                self._breach(queue, f"{member} begins {offset} while it runs another")

    def _is_settled_to(self, queue: Queue) -> int:
        """The first offset that is not settled."""
        assert self.cluster is not None
        stored, settled = self.cluster.log(queue).stored, self._settled[queue]
        at = self._prefix[queue]
        while at < len(stored) and (at in settled or stored[at].number in self._resent):
            at += 1
        self._prefix[queue] = at
        return at

    def _may_go_back(self, queue: Queue) -> bool:
        """Whether its broker has just lost its locks, or an operator has set the group back."""
        last_s = max(self._moved_s.get(queue, 0.0), self._crashed_s.get(queue.broker, 0.0))
        return _now_s() - last_s < BROKER_LOCK_S

    def _breach(self, queue: Queue, what: str) -> None:
        self.breaches.append(f"{what}\n{self.story(queue)}")


def _now_s() -> float:
    return asyncio.get_running_loop().time()
