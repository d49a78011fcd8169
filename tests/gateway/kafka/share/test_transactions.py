"""Share groups that read what is committed, and those that read everything."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.kafka.share.world import ACCEPT, Got, Sharer, Shares, joined, offsets
from tests.gateway.kafka.transactions.ledger import (
    coordinator_of,
    produce_of,
    transactional_writes,
)
from tests.gateway.kafka.world import call
from tests.world import NOW_MS

from rockgate.gateway.kafka.handlers.end_txn import EndTxn
from rockgate.gateway.kafka.handlers.init_producer_id import InitProducerId
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.protocol.kafka.messages.end_txn import EndTxnRequest, EndTxnResponse
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch


class TransactionalShares(Shares):
    """A world with share groups and transactions."""

    def open(self) -> None:
        super().open()
        ledger, durability = coordinator_of(self), self.durability
        self.producing = produce_of(self, durability, transactional_writes(self))
        self.handlers |= {
            "InitProducerId": InitProducerId(
                producers=self.folds.producers, coordinator=ledger, durability=durability
            ),
            "EndTxn": EndTxn(coordinator=ledger, durability=durability),
        }

    def begin(self, id_: str) -> ProducerIdAndEpoch:
        request = InitProducerIdRequest(transactional_id=id_, transaction_timeout_ms=60_000)
        answer = self.ask(request, InitProducerIdResponse, 5)
        assert not answer.error_code
        return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)

    def write(self, id_: str, producer: ProducerIdAndEpoch, sequence: int, *values: bytes) -> None:
        batch = build_batch(
            [Record(at, NOW_MS, None, value) for at, value in enumerate(values)],
            base_offset=0,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=0, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=id_,
            acks=-1,
            timeout_ms=1_000,
            topic_data=[TopicProduceData(name="orders", partition_data=[data])],
        )
        answer: Any = self.producing.handle(request, call(12))
        assert not answer.topics[0].partitions[0].error_code

    def end(self, id_: str, producer: ProducerIdAndEpoch, *, commit: bool) -> ProducerIdAndEpoch:
        request = EndTxnRequest(
            transactional_id=id_,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=commit,
        )
        answer = self.ask(request, EndTxnResponse, 5)
        assert not answer.error_code
        return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


@pytest.fixture
def world() -> TransactionalShares:
    world = TransactionalShares()
    world.topic("orders", 1)
    world.configure(auto_offset_reset="earliest", isolation_level="read_committed")
    world.configure("all", auto_offset_reset="earliest", isolation_level="read_uncommitted")
    return world


def values(some: list[Got]) -> list[bytes]:
    return [each.value for each in some]


async def both(world: Shares) -> tuple[Sharer, Sharer]:
    (careful,) = joined(world, "a")
    (eager,) = joined(world, "b", group="all")
    return careful, eager


async def finish(member: Sharer, some: list[Got]) -> None:
    for each in some:
        assert member.code((each.offset, each.offset, [ACCEPT])) == 0


@pytest.mark.row("GRP-25")
async def test_an_aborted_transaction_is_passed_over_by_who_reads_what_is_committed(
    world: TransactionalShares,
) -> None:
    careful, eager = await both(world)
    producer = world.begin("x")
    world.write("x", producer, 0, b"1", b"2")
    producer = world.end("x", producer, commit=False)
    world.write("x", producer, 0, b"3")
    world.end("x", producer, commit=True)
    found = await careful.take()
    assert values(found) == [b"3"]
    await finish(careful, found)
    assert await careful.take() == []
    window = world.window()
    assert (window.start, len(window)) == (world.queue().next_offset, 0), "markers are passed too"
    assert values(await eager.take()) == [b"1", b"2", b"3"]


@pytest.mark.row("GRP-25")
async def test_nothing_is_read_from_an_open_transaction_on(world: TransactionalShares) -> None:
    careful, eager = await both(world)
    world.produce(b"before")
    first, second = world.begin("x"), world.begin("y")
    world.write("x", first, 0, b"open")
    world.produce(b"after")
    world.write("y", second, 0, b"late")
    assert values(await careful.take()) == [b"before"]
    assert values(await eager.take()) == [b"before", b"open", b"after", b"late"]
    world.end("y", second, commit=False)
    assert await careful.take() == [], "the other is still open"
    world.end("x", first, commit=True)
    assert values(await careful.take()) == [b"open", b"after"]
    assert await careful.take() == []


@pytest.mark.row("GRP-25")
async def test_a_record_that_was_aborted_is_not_held_by_anybody(
    world: TransactionalShares,
) -> None:
    careful, _ = await both(world)
    producer = world.begin("x")
    world.write("x", producer, 0, b"1", b"2", b"3")
    world.produce(b"4")
    world.end("x", producer, commit=False)
    assert offsets(await careful.take()) == [3]
    assert careful.code((0, 2, [ACCEPT])) == 0, "before the start, as what is finished"
    assert [(run.first, run.end) for run in world.window().runs()] == [(3, 4)]


async def test_a_group_that_becomes_careful_passes_over_what_it_has_not_read(
    world: TransactionalShares,
) -> None:
    (eager,) = joined(world, "b", group="all")
    producer = world.begin("x")
    world.write("x", producer, 0, b"1")
    found = await eager.take()
    assert values(found) == [b"1"]
    await finish(eager, found)
    world.configure("all", auto_offset_reset="earliest", isolation_level="read_committed")
    world.write("x", producer, 1, b"2")
    assert await eager.take() == []
    world.end("x", producer, commit=False)
    world.produce(b"3")
    assert values(await eager.take()) == [b"3"]
