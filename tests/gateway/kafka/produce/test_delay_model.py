"""Batches, transactions, restarts and time at random, beside a list of what must be seen."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.budget import budget
from tests.gateway.kafka.delayed import Given, Postponing, delayed, plain

from rockgate.gateway.kafka.produce import delay, delay_schedule, topic_checks
from rockgate.protocol.kafka.records.batch import Compression

DELAYS_MS = st.none() | st.sampled_from((-7, 0, 400, 1_000, 1_000, 90_000, 86_400_000))
BATCHES = st.lists(DELAYS_MS, min_size=1, max_size=5)
CODECS = st.sampled_from(Compression)
IDS = st.sampled_from(("one", "two"))
AT_ONCE = 3


def ahead(delays_ms: list[int | None]) -> list[int | None]:
    """What is scheduled by steps and is past comes step by step, not in the order of time."""
    return [400 if ms is not None and ms <= 0 else ms for ms in delays_ms]


class DelayingMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(delay, "WAITS_MAX", AT_ONCE)
        self.patch.setattr(topic_checks, "WAITS_MAX", AT_ONCE)
        self.patch.setattr(delay_schedule, "STEP_RECORDS", 2)
        self.world = Postponing()
        self.world.mixed()
        self.now_ms = self.world.clock.now_ms()
        self.number = 0
        self.seen: list[bytes] = []
        """What a reader of everything gets: records at once, and deliveries in their order."""
        self.waiting: list[tuple[int, int, bytes]] = []
        """Due time, order of scheduling, value."""
        self.order = 0
        self.producers = {id_: self.world.init(id_).producer for id_ in ("one", "two")}
        self.sequences = {"one": 0, "two": 0}
        self.open: dict[str, list[tuple[int, bytes]]] = {"one": [], "two": []}
        self.began: set[str] = set()
        self.plain, self.plain_sequence = self.world.init("plain").producer, 0
        self.last: bytes | None = None

    def teardown(self) -> None:
        self.patch.undo()

    def _given(self, delays_ms: list[int | None]) -> list[Given]:
        given = []
        for delay_ms in delays_ms:
            value = b"%d" % self.number
            self.number += 1
            given.append(plain(value) if delay_ms is None else delayed(value, delay_ms))
        return given

    def _wait(self, delay_ms: int, value: bytes) -> None:
        heapq.heappush(self.waiting, (self.now_ms + delay_ms, self.order, value))
        self.order += 1

    @rule(delays_ms=BATCHES, codec=CODECS)
    def produce(self, delays_ms: list[int | None], codec: Compression) -> None:
        if sum(delay_ms is not None for delay_ms in delays_ms) > AT_ONCE:
            delays_ms = ahead(delays_ms)
        given = self._given(delays_ms)
        batch = self.world.batch(
            given, codec=codec, producer=self.plain, sequence=self.plain_sequence
        )
        self.plain_sequence += len(given)
        assert self.world.produce(batch).error_code == 0
        self.last = batch
        for delay_ms, (value, _) in zip(delays_ms, given, strict=True):
            if delay_ms is None:
                self.seen.append(value)
            else:
                self._wait(delay_ms, value)
        self._settle()

    @rule()
    def send_the_last_one_again(self) -> None:
        if self.last is not None:
            assert self.world.produce(self.last).error_code == 0

    @rule(id_=IDS, delays_ms=BATCHES, codec=CODECS)
    def write_in_a_transaction(
        self, id_: str, delays_ms: list[int | None], codec: Compression
    ) -> None:
        delays_ms = ahead(delays_ms)
        given = self._given(delays_ms)
        batch = self.world.batch(
            given,
            codec=codec,
            producer=self.producers[id_],
            sequence=self.sequences[id_],
            is_transactional=True,
        )
        self.sequences[id_] += len(given)
        assert self.world.produce(batch, id_=id_).error_code == 0
        self.began.add(id_)
        for delay_ms, (value, _) in zip(delays_ms, given, strict=True):
            if delay_ms is None:
                self.seen.append(value)
            else:
                self.open[id_].append((delay_ms, value))

    @rule(id_=IDS, is_commit=st.booleans())
    def end_a_transaction(self, id_: str, is_commit: bool) -> None:
        if id_ not in self.began:
            return
        self.began.discard(id_)
        ended = self.world.end(self.producers[id_], commit=is_commit, id_=id_)
        assert ended.code == 0
        self.producers[id_], self.sequences[id_] = ended.producer, 0
        waits, self.open[id_] = self.open[id_], []
        if is_commit:
            for delay_ms, value in waits:
                self._wait(delay_ms, value)
        self._settle()

    @rule(milliseconds=st.sampled_from((0, 1, 399, 1_000, 60_000, 100_000_000)))
    def let_time_pass(self, milliseconds: int) -> None:
        # An abandoned transaction is aborted in the end; another test covers that.
        self.now_ms += milliseconds
        self.world.clock.advance(milliseconds)
        self._settle()

    @rule(how=st.sampled_from(("reopen", "kill")))
    def start_again(self, how: str) -> None:
        getattr(self.world, how)()

    def _settle(self) -> None:
        """Everything that is due comes, in the order of time and of scheduling."""
        self.world.settle()
        while self.waiting and self.waiting[0][0] <= self.now_ms:
            self.seen.append(heapq.heappop(self.waiting)[2])

    @invariant()
    def readers_see_what_is_there(self) -> None:
        assert self.world.values() == self.seen
        assert self.world.waiting_count == len(self.waiting)
        held = sum(1 for waits in self.open.values() if waits)
        assert bool(len(self.world.folds.held)) == bool(held)


DelayingMachine.TestCase.settings = settings(
    max_examples=budget("record_delay_examples"), stateful_step_count=25, deadline=None
)
TestDelayingModel = DelayingMachine.TestCase
