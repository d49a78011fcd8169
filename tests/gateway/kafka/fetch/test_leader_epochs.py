from __future__ import annotations

import pytest
from tests.gateway.kafka.world import KafkaWorld

from rockgate.gateway.kafka.fetch.leader_epochs import UNDEFINED, EpochEnd
from rockgate.protocol import entry as envelope
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.log.commitlog import Draft
from rockgate.store.queues.queueindex import Unit


def world_of_epochs(*counts: int, are_messages: bool = False) -> KafkaWorld:
    """A world in which each epoch, from 1 on, wrote that many records; the last is the current."""
    world = KafkaWorld()
    world.topic()
    for epoch, count in enumerate(counts, 1):
        assert world.store.epochs.current == epoch
        for _ in range(count):
            if are_messages:
                world.message()
            else:
                world.append()
        if epoch < len(counts):
            world.reopen()
    return world


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, None),
        (2, None),
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_client_must_not_take_another_epoch_for_the_current(
    epoch: int, code: ErrorCode | None
) -> None:
    assert world_of_epochs(1, 1).epochs.refusal(epoch) is code


@pytest.mark.parametrize("are_messages", [False, True])
@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (-1, UNDEFINED),
        (0, EpochEnd(0, 0)),
        (1, EpochEnd(1, 5)),
        # Nothing was written in epoch 2: what an earlier one wrote last is meant.
        (2, EpochEnd(1, 5)),
        (3, EpochEnd(3, 8)),
        (4, EpochEnd(4, 9)),
        (5, EpochEnd(5, 9)),
        (6, UNDEFINED),
    ],
)
def test_an_epoch_ends_where_the_next_one_that_wrote_begins(
    epoch: int, end: EpochEnd, are_messages: bool
) -> None:
    world = world_of_epochs(5, 0, 3, 1, 0, are_messages=are_messages)
    assert world.epochs.end(world.queue(), epoch) == end


def test_an_epoch_of_which_nothing_is_left_ends_at_the_log_start() -> None:
    world = world_of_epochs(5, 3, 1)
    world.delete_records(6)
    assert world.epochs.end(world.queue(), 1) == EpochEnd(1, 6)
    assert world.epochs.end(world.queue(), 2) == EpochEnd(2, 8)


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_in_an_empty_queue_every_epoch_ends_where_it_begins(epoch: int) -> None:
    world = world_of_epochs(0, 0)
    assert world.epochs.end(world.queue(), epoch) == EpochEnd(epoch, 0)


def test_epochs_end_between_batches_of_many_records() -> None:
    world = KafkaWorld()
    world.topic()
    ends = []
    for batches in (1, 40, 3, 17):
        for _ in range(batches):
            world.append(times=[0] * 7)
        ends.append(world.queue().next_offset)
        world.reopen()
    found = [world.epochs.end(world.queue(), epoch).offset for epoch in (1, 2, 3, 4)]
    assert found == ends


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (4, 1), (5, 3), (7, 3), (8, 4), (9, 4)])
def test_an_offset_has_the_epoch_of_its_entry_and_the_end_the_current_one(
    offset: int, epoch: int
) -> None:
    world = world_of_epochs(5, 0, 3, 1)
    assert world.epochs.at(world.queue(), offset) == epoch


@pytest.mark.parametrize("is_batch", [False, True])
def test_an_entry_that_was_moved_keeps_its_epoch(is_batch: bool) -> None:
    world = world_of_epochs(2, 2, are_messages=not is_batch)
    queue = world.queue()
    for unit in [Unit._make(fields) for fields in queue.walk(0)][:2]:
        view = world.store.reader.entry(queue, unit).entry
        entry = envelope.read(view)
        written = world.store.log.append(
            Draft(
                queue.topic,
                queue.queue_id,
                unit.base,
                bytes(envelope.body_of(view)),
                b"__EPOCH\x011\x02",
                batch_count=entry.offset_count if is_batch else 0,
                sys_flag=envelope.MOVED,
            )
        )
        queue.add_moved(unit._replace(position=written.position, size=written.size))
    assert world.store.epochs.at(world.store.log.end) == 2
    assert [world.epochs.at(queue, offset) for offset in range(4)] == [1, 1, 2, 2]
    assert world.epochs.end(queue, 1) == EpochEnd(1, 2)
