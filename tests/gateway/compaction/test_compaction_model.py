"""Random writes of both wires, transactions, cleanings, retention and restarts against a model."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.budget import budget
from tests.gateway.compaction.compacting import Compacting, Pair

from rockgate.protocol.kafka.records.batch import Compression

KEYS = st.sampled_from([*(f"k{number}" for number in range(12)), "a-key-of-more-than-15-bytes"])
PAIRS = st.tuples(KEYS, st.none() | st.text("xyz", min_size=1, max_size=80))
NAMES = st.sampled_from(("table", "both"))
CONFIGS = {
    "table": {
        "cleanup_policy": "compact",
        "delete_retention_ms": "3000",
        "min_cleanable_dirty_ratio": "0.2",
    },
    "both": {
        "cleanup_policy": "compact,delete",
        "retention_ms": "60000",
        "delete_retention_ms": "3000",
        "min_compaction_lag_ms": "2000",
    },
}


class CompactionMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.world = Compacting()
        self.transaction: tuple[str, int, list[tuple[int, Pair]]] | None = None
        for name, config in CONFIGS.items():
            self.world.topic(name, 1, **config)

    @rule(
        name=NAMES,
        pairs=st.lists(PAIRS, min_size=1, max_size=12),
        compression=st.sampled_from((Compression.NONE, Compression.ZSTD, Compression.LZ4)),
    )
    def produce(self, name: str, pairs: list[Pair], compression: Compression) -> None:
        self.world.produce(*pairs, name=name, compression=compression)

    @rule(name=NAMES, pair=PAIRS)
    def send(self, name: str, pair: Pair) -> None:
        self.world.send(pair, name)

    @rule(pairs=st.lists(PAIRS, min_size=1, max_size=5))
    def produce_in_a_transaction(self, pairs: list[Pair]) -> None:
        base = self.world.produce(*pairs, producer_id=7, is_transactional=True, is_visible=False)
        written = [(base + index, pair) for index, pair in enumerate(pairs)]
        if self.transaction is None:
            self.transaction = ("table", base, written)
        else:
            self.transaction[2].extend(written)

    @precondition(lambda self: getattr(self, "transaction", None) is not None)
    @rule(commits=st.booleans())
    def end(self, commits: bool) -> None:
        assert self.transaction is not None
        name, first, written = self.transaction
        self.world.end(7, first, commits=commits, name=name)
        self.transaction = None
        if commits:
            for offset, pair in written:
                del self.world.hidden[name, 0, offset]
                self.world.note(name, 0, offset, pair)
            self.world.model[name, 0].sort()

    @rule()
    def roll(self) -> None:
        self.world.roll()

    @rule(milliseconds=st.sampled_from((10, 1_200, 5_000)), ticks=st.integers(0, 150))
    def pass_time(self, milliseconds: int, ticks: int) -> None:
        self.world.clock.advance(milliseconds)
        for _ in range(ticks):
            self.world.store.tick()

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        queue = self.world.queue("both")
        self.world.delete_records(int(part * queue.next_offset), "both")

    @rule(kills=st.booleans())
    def restart(self, kills: bool) -> None:
        if kills:
            self.world.kill()
        else:
            self.world.reopen()

    @precondition(lambda self: hasattr(self, "world"))
    @invariant()
    def readers_get_what_they_must(self) -> None:
        for name in CONFIGS:
            self.world.check(name)


TestCompaction = CompactionMachine.TestCase
TestCompaction.settings = settings(
    max_examples=budget("compaction_examples"), stateful_step_count=40, deadline=None
)
