"""What is known of half messages without reading any: which are decided, and how they ended."""

from __future__ import annotations

import pytest
from tests.gateway.remoting.halfworld import SYSTEM, HalfWorld
from tests.world import SECOND

from rockgate.store.half import MESSAGES, Outcome, Outcomes
from rockgate.store.log.commitlog import CommitLog


@pytest.mark.row("T-15")
def test_whether_a_half_message_is_decided_is_known_without_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = HalfWorld()
    producer = world.producer()
    offsets = [world.prepare(b"%d" % number).offset for number in range(40)]
    for offset in offsets[::2]:
        world.halves.commit(offset, "payers")
    for offset in offsets[1::2]:
        world.halves.roll_back(offset, "payers")
    world.kill()
    producer = world.producer()
    op_topics = [topic.name for topic in world.store.topics if "_OP_" in topic.name]
    assert op_topics == [], "decisions are state, and no messages that somebody would pull"

    def unread(*what: object) -> None:
        raise AssertionError("something is read")

    for name in ("read", "slice", "walk"):
        monkeypatch.setattr(CommitLog, name, unread)
    world.pass_time(3_600 * SECOND)
    assert producer.told == []
    assert [world.undecided.find(offset) for offset in offsets] == [None] * 40
    assert [world.undecided.outcome(offset) for offset in offsets[:2]] == [
        Outcome.COMMITTED,
        Outcome.ROLLED_BACK,
    ]


@pytest.mark.row("T-17")
def test_a_decision_outlives_its_half_message_and_goes_when_a_million_are_newer() -> None:
    world = HalfWorld()
    half = world.prepare()
    world.halves.roll_back(half.offset, "payers")
    assert not world.undecided.wants(MESSAGES, 0, half.offset, half.offset + 1), "it may go"
    topic = world.store.topics.get(SYSTEM[0])
    world.store.topics.advance_log_starts({topic: {0: half.offset + 1}})
    assert world.store.queue(topic, 0).log_start == half.offset + 1
    world.kill()
    assert world.undecided.outcome(half.offset) is Outcome.ROLLED_BACK
    assert world.halves.commit(half.offset, "payers") is None
    assert world.delivered() == []
    outcomes = Outcomes()
    outcomes.begin(0)
    outcomes.end(0, Outcome.COMMITTED)
    outcomes.begin((1 << 20) - 1)
    assert outcomes.find(0) == Outcome.COMMITTED
    outcomes.begin(1 << 20)
    assert outcomes.find(0) == 0, "a byte each, and no more than a million of them"
