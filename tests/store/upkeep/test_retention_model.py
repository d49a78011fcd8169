"""Random appends, deletions, time, ticks and restarts against a list per queue."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.budget import budget
from tests.store.keeping import SEGMENT, Held, Keeping

NAMES = ("brief", "small", "both", "endless")
CONFIGS = {
    "brief": {"retention_ms": "5000"},
    "small": {"retention_bytes": "2000"},
    "both": {"retention_ms": "9000", "retention_bytes": "4000"},
    "endless": {"cleanup_policy": "compact", "retention_ms": "1"},
}
INTERVAL_MS = 1_000


@dataclass
class _Stored:
    held: Held
    store_ms: int


@dataclass
class _Model:
    """What was appended to a queue, and from where on its owner wants to see it."""

    items: list[_Stored] = field(default_factory=list)
    deleted_before: int = 0

    @property
    def end(self) -> int:
        return sum(item.held[1] for item in self.items)

    def from_offset(self, offset: int) -> list[_Stored]:
        return [item for item in self.items if item.held[0] + item.held[1] > offset]


class RetentionMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.keeping = Keeping(retention_interval_ms=INTERVAL_MS)
        self.models: dict[str, _Model] = {}
        for name in NAMES:
            self.create(name)

    def create(self, name: str) -> None:
        self.keeping.topic(name, 1, **CONFIGS[name])
        self.models[name] = _Model()

    # What happens

    @rule(
        name=st.sampled_from(NAMES),
        count=st.integers(1, 12),
        size=st.sampled_from((10, 300, 1500)),
    )
    def append(self, name: str, count: int, size: int) -> None:
        queue = self.keeping.queue(name)
        for held in self.keeping.fill(name, count, size=size):
            unit = queue.find(held[0])
            assert unit is not None
            self.models[name].items.append(_Stored(held, unit.store_ms))

    @rule(milliseconds=st.sampled_from((1, 700, 4_000, 20_000)), ticks=st.integers(0, 60))
    def pass_time(self, milliseconds: int, ticks: int) -> None:
        self.keeping.clock.advance(milliseconds)
        for _ in range(ticks):
            self.keeping.store.tick()

    @rule(milliseconds=st.sampled_from((-8_000, -100, 30_000)))
    def step_clock(self, milliseconds: int) -> None:
        self.keeping.clock.step(milliseconds)

    @rule(name=st.sampled_from(NAMES), part=st.floats(0, 1))
    def delete_records(self, name: str, part: float) -> None:
        model = self.models[name]
        offset = int(part * model.end)
        topic = self.keeping.store.topics.get(name)
        self.keeping.store.topics.advance_log_starts({topic: {0: offset}})
        model.deleted_before = max(model.deleted_before, offset)

    @rule(name=st.sampled_from(NAMES))
    def create_again(self, name: str) -> None:
        self.keeping.store.topics.delete([self.keeping.store.topics.get(name)])
        self.create(name)

    @rule()
    def restart(self) -> None:
        self.keeping.reopen()

    @rule()
    def kill(self) -> None:
        self.keeping.kill()

    @rule()
    def come_to_rest(self) -> None:
        """Everything that may go has gone once the store has nothing left to do."""
        self.keeping.pass_time(INTERVAL_MS)
        now_ms = self.keeping.clock.now_ms()
        for unit in self.keeping.queue("brief").walk(self.keeping.queue("brief").log_start):
            # The wall clock may have been doubted, by at most what it was stepped forward.
            assert unit[4] >= now_ms - 5_000 - 30_000 * 40
        live = sum(
            unit[2]
            for name in NAMES
            for unit in self.keeping.queue(name).walk(self.keeping.queue(name).log_start)
        )
        row = self.keeping.row()
        assert len(row) * SEGMENT <= 2 * live + 4 * SEGMENT, (len(row), live)

    # What always holds

    @precondition(lambda self: hasattr(self, "models"))
    @invariant()
    def readers_get_everything_that_has_not_expired(self) -> None:
        for name, model in self.models.items():
            queue = self.keeping.queue(name)
            assert queue.next_offset == model.end
            assert queue.log_start >= model.deleted_before
            kept = model.from_offset(queue.log_start)
            assert self.keeping.read(name) == [item.held for item in kept]
            self._check_that_the_rest_may_be_gone(name, model, kept)

    def _check_that_the_rest_may_be_gone(
        self, name: str, model: _Model, kept: list[_Stored]
    ) -> None:
        gone = model.items[: len(model.items) - len(kept)]
        unasked = [i for i in gone if i.held[0] + i.held[1] > model.deleted_before]
        if not unasked:
            return
        assert name != "endless"
        last = unasked[-1]
        # What counts is the size in the log: an entry that was moved takes a little more.
        queue = self.keeping.queue(name)
        size = sum(unit[2] for unit in queue.walk(queue.log_start))
        limit = {"brief": 5_000, "both": 9_000}.get(name)
        # Time only advances from when it expired, except for the steps back that the clock made.
        is_old = limit is not None and last.store_ms < self.latest_ms() - limit
        is_much = name != "brief" and size >= {"small": 2000, "both": 4000}[name]
        assert is_old or is_much, (name, last.store_ms, size)

    def latest_ms(self) -> int:
        self.high_ms = max(getattr(self, "high_ms", 0), self.keeping.clock.now_ms())
        return self.high_ms


TestRetention = RetentionMachine.TestCase
TestRetention.settings = settings(
    max_examples=budget("retention_examples"), stateful_step_count=30, deadline=None
)
