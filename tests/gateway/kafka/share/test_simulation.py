"""Share groups under random members, lost answers, restarts and kills.

The model knows every record, who holds it and until when, and what was accepted or rejected. After
every step: one lock a record; nothing that was finished comes back; counts only grow, unless a kill
lost what was not flushed. In the end everything is finished: no member starves.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from tests.budget import budget
from tests.gateway.kafka.share.world import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    Got,
    Sharer,
    Shares,
)
from tests.seeds import seeded

Place = tuple[int, int]
"""Partition and offset."""
LOCK_MS = 30_000
LIMIT = 5
STEPS = 60


class Model:
    """What must be true of every record."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.world = Shares()
        self.world.topic("orders", 2)
        self.world.configure(auto_offset_reset="earliest", partition_max_record_locks="100")
        self.members: dict[str, Sharer] = {}
        self.names = 0
        self.produced = [0, 0]
        self.locks: dict[Place, tuple[str, int]] = {}
        self.deliveries: dict[Place, int] = {}
        self.finished: set[Place] = set()
        self.lost: set[Place] = set()
        """What members hold without knowing."""
        self.listen()

    def listen(self) -> None:
        """Learn who has left: what a member held is available at once."""
        self.world.shares.on_left.append(lambda group, name: self.unlock(name))

    def now_ms(self) -> int:
        return self.world.store.clock.monotonic_ms()

    # What happens

    def join(self) -> None:
        if len(self.members) >= 4:
            return
        self.names += 1
        member = Sharer(self.world, f"m{self.names}")
        assert member.beat().error_code == 0
        self.members[member.name] = member

    def beat(self) -> None:
        for member in list(self.members.values()):
            if self.random.random() < 0.8:
                answer = member.beat()
                if answer.error_code:
                    # It was removed: it joins again, as a client does.
                    member.member_epoch, member.epoch = 0, 0
                    self.unlock(member.name)
                    assert member.beat(member_epoch=0).error_code == 0

    def produce(self) -> None:
        partition = self.random.randrange(2)
        count = self.random.randint(1, 30)
        self.world.batch(count, partition=partition)
        self.produced[partition] += count

    async def fetch(self, *, is_lost: bool = False) -> None:
        member = self.any()
        if member is None:
            return
        member.epoch = 0
        strict = self.random.randrange(2)
        answer = await member.fetch(
            max_records=self.random.choice((1, 5, 500)), share_acquire_mode=strict
        )
        assert not answer.error_code, answer
        taken = [
            Got(data.partition_index, offset, each.delivery_count, b"")
            for topic in answer.responses
            for data in topic.partitions
            for each in data.acquired_records
            for offset in range(each.first_offset, each.last_offset + 1)
        ]
        self.check(member.name, taken)
        if is_lost:
            # The client does not know what it got: it will acknowledge nothing of it.
            self.lost |= {(each.partition, each.offset) for each in taken}

    def check(self, name: str, taken: Sequence[Got]) -> None:
        now_ms = self.now_ms()
        for each in taken:
            place = each.partition, each.offset
            assert place not in self.finished, f"{place} was finished and came back"
            holder, until_ms = self.locks.get(place, ("", -1))
            assert until_ms <= now_ms, f"{place} is held by {holder}"
            self.lost.discard(place)
            assert each.offset < self.produced[each.partition]
            known = self.deliveries.get(place, 0)
            assert each.deliveries == known + 1, f"{place} was delivered {known} times"
            assert each.deliveries <= LIMIT
            self.deliveries[place] = each.deliveries
            self.locks[place] = (name, now_ms + LOCK_MS)

    def acknowledge(self) -> None:
        member = self.any()
        if member is None:
            return
        now_ms = self.now_ms()
        held = [
            place
            for place, (name, until_ms) in self.locks.items()
            if name == member.name and until_ms > now_ms and place not in self.lost
        ]
        for partition in (0, 1):
            offsets = sorted(o for p, o in held if p == partition and self.random.random() < 0.7)
            if not offsets:
                continue
            types = [self.random.choice((ACCEPT, ACCEPT, RELEASE, REJECT, RENEW)) for _ in offsets]
            code = member.code(
                *((o, o, [int(type_)]) for o, type_ in zip(offsets, types, strict=True)),
                partition=partition,
                is_renew_ack=True,
            )
            assert code == 0
            for offset, type_ in zip(offsets, types, strict=True):
                place = partition, offset
                if type_ == RENEW:
                    self.locks[place] = (member.name, now_ms + LOCK_MS)
                    continue
                del self.locks[place]
                if type_ != RELEASE or self.deliveries[place] >= LIMIT:
                    self.finished.add(place)

    def leave(self) -> None:
        member = self.any()
        if member is None:
            return
        assert member.leave() == 0
        del self.members[member.name]
        # Its session outlasts it a little, and with that its locks.
        self.world.end_left_sessions()
        self.unlock(member.name)

    def pass_time(self) -> None:
        self.world.pass_time(self.random.choice((100, 2_000, 12_000, 31_000)))
        while self.world.records.expire():
            pass
        self.settle()

    def restart(self) -> None:
        if self.random.randrange(2):
            self.world.reopen()
        else:
            self.world.kill()
        self.listen()
        for name in {name for name, _ in self.locks.values()}:
            self.unlock(name)
        for member in self.members.values():
            member.epoch = 0
            if member.beat().error_code:
                member.member_epoch = 0
                assert member.beat(member_epoch=0).error_code == 0

    # What follows from it

    def any(self) -> Sharer | None:
        return self.random.choice(list(self.members.values())) if self.members else None

    def unlock(self, name: str) -> None:
        """A member is gone: what it held is available, or archived at the limit."""
        for place in [place for place, (holder, _) in self.locks.items() if holder == name]:
            del self.locks[place]
            if self.deliveries[place] >= LIMIT:
                self.finished.add(place)

    def settle(self) -> None:
        """Locks that are over."""
        now_ms = self.now_ms()
        for place in [place for place, (_, until) in self.locks.items() if until <= now_ms]:
            del self.locks[place]
            if self.deliveries[place] >= LIMIT:
                self.finished.add(place)

    async def drain(self) -> None:
        """One member that does its work finishes everything."""
        for member in list(self.members.values()):
            member.leave()
            self.unlock(member.name)
        self.members.clear()
        self.world.pass_time(LOCK_MS + 1_000)
        while self.world.records.expire():
            pass
        self.settle()
        self.join()
        (member,) = self.members.values()
        self.world.pass_time(1_100)
        member.beat()
        for _ in range(5_000):
            self.check(member.name, await member.take())
            self.acknowledge()
            if all(self.is_done(partition) for partition in (0, 1)):
                return
            self.world.pass_time(self.random.choice((50, 50, LOCK_MS)))
            member.beat()
            while self.world.records.expire():
                pass
            self.settle()
        raise AssertionError("records are left that nobody gets")

    def is_done(self, partition: int) -> bool:
        topic = self.world.store.topics.get("orders")
        window = self.world.folds.share_state.find("g", topic.id, partition)
        return window is not None and (window.start, len(window)) == (self.produced[partition], 0)


@pytest.mark.row("GRP-26")
@pytest.mark.row("GRP-23")
@pytest.mark.row("GRP-22")
@pytest.mark.row("GRP-21")
async def test_no_record_has_two_holders_and_nothing_finished_comes_back() -> None:
    random = seeded()
    for _ in range(budget("share_histories")):
        model = Model(Random(random.randrange(1 << 32)))
        model.join()
        model.produce()
        for _ in range(STEPS):
            step = random.choice(
                (
                    *("join", "beat", "produce", "fetch", "fetch", "fetch", "lost", "acknowledge"),
                    *("acknowledge", "acknowledge", "leave", "time", "time", "restart"),
                )
            )
            if step == "fetch":
                await model.fetch()
            elif step == "lost":
                await model.fetch(is_lost=True)
            elif step == "time":
                model.pass_time()
                model.beat()
            else:
                getattr(model, step)()
        await model.drain()
