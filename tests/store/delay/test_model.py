"""Schedules, recalls, restarts and a clock that steps, at random, against a model.

The model is a list of what must come out: everything once, nothing early, in the order of time and
scheduling. A clock that is set back delays messages scheduled for a time of day, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.budget import budget
from tests.store.waiting_store import WaitingStore

from rockgate.store.clock import LASTS_MS
from rockgate.store.delay.changes import DUE_MAX, due_after, due_ms
from rockgate.store.log.commitlog import Draft

LEVELS_MS = (1_000, 5_000, 60_000, 3_600_000)


@dataclass
class Item:
    body: bytes
    when: int
    offset: int

    @property
    def due_ms(self) -> int:
        return due_ms(self.when)

    @property
    def is_delay(self) -> bool:
        return self.when > DUE_MAX


class DelayMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.world = WaitingStore()
        self.steady_ms = self.world.clock.now_ms()
        self.waiting: list[Item] = []
        self.out: list[bytes] = []
        self.number = 0

    def _schedule(self, when: int) -> None:
        body = b"%06d" % self.number
        self.number += 1
        self.waiting.append(Item(body, when, self.world.schedule(body, when)))

    @rule(delay_ms=st.sampled_from(LEVELS_MS), count=st.integers(1, 5))
    def schedule_by_level(self, delay_ms: int, count: int) -> None:
        for _ in range(count):
            self._schedule(due_after(self.world.store.deliveries.now_ms(), delay_ms))

    @rule(delay_ms=st.integers(-5_000, 7_200_000))
    def schedule_for_any_time(self, delay_ms: int) -> None:
        self._schedule(self.world.store.deliveries.now_ms() + delay_ms)

    @rule(
        count=st.integers(1, 4), delays_ms=st.lists(st.integers(0, 90_000), min_size=4, max_size=4)
    )
    def schedule_some_of_a_batch(self, count: int, delays_ms: list[int]) -> None:
        bodies = [b"%06d" % (self.number + index) for index in range(4)]
        self.number += 4
        now_ms = self.world.store.deliveries.now_ms()
        waits = [
            (index, due_after(now_ms, delays_ms[index]) if index % 2 else now_ms + delays_ms[index])
            for index in range(count)
        ]
        draft = Draft(b"", 0, 0, b",".join(bodies), batch_count=4)
        base = self.world.store.deliveries.append(self.world.queue("later"), draft, waits).offset
        self.waiting += [Item(bodies[index], when, base + index) for index, when in waits]

    @rule(data=st.data())
    def recall(self, data: st.DataObject) -> None:
        if not self.waiting:
            return
        item = data.draw(st.sampled_from(self.waiting))
        assert self.world.recall(item.offset)
        assert not self.world.recall(item.offset)
        self.waiting.remove(item)

    @rule(milliseconds=st.one_of(st.integers(0, 70_000), st.integers(0, 4_000_000)))
    def time_passes(self, milliseconds: int) -> None:
        # In pieces, as a server would look: a step is believed only by one who looks.
        for part in (milliseconds // 2, milliseconds - milliseconds // 2):
            self.world.clock.advance(part)
            self.steady_ms += part
            self._look()

    @rule()
    def noise(self) -> None:
        for _ in range(8):
            self.world.store.appender.message(
                self.world.queue("later"), Draft(b"", 0, 0, b"x" * 600)
            )
        self.world.settle()

    @rule(step_ms=st.sampled_from([-86_400_000, 86_400_000]))
    def the_clock_steps_for_a_while(self, step_ms: int) -> None:
        self.world.clock.step(step_ms)
        self._look()
        passes = LASTS_MS // 3
        self.world.clock.advance(passes)
        self.steady_ms += passes
        self._look()
        self.world.clock.step(-step_ms)

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        if is_clean:
            self.world.reopen()
        else:
            self.world.kill()

    def _look(self) -> None:
        """Let the server look once: what is due comes out, by time and then by scheduling."""
        self.world.settle()
        assert self.world.store.deliveries.now_ms() == self.steady_ms
        day_ms = min(self.steady_ms, self.world.clock.now_ms())
        due = [
            item
            for item in self.waiting
            if item.due_ms <= (self.steady_ms if item.is_delay else day_ms)
        ]
        self.waiting = [item for item in self.waiting if item not in due]
        self.out += [item.body for item in sorted(due, key=lambda item: item.due_ms)]
        assert self.world.delivered() == self.out

    @invariant()
    def all_that_is_due_came_out_once_and_the_rest_waits(self) -> None:
        if not hasattr(self, "world"):
            return
        self._look()
        delay = self.world.store.delay
        assert delay.waiting_count == len(self.waiting)
        assert {each.offset: each.due_ms for each in delay.all()} == {
            item.offset: item.due_ms for item in self.waiting
        }


TestDelay = DelayMachine.TestCase
TestDelay.settings = settings(
    max_examples=budget("delay_examples"), stateful_step_count=25, deadline=None
)
