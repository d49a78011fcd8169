import pytest
from tests.gateway.kafka.world import KafkaWorld


def world_before_and_after() -> KafkaWorld:
    """One entry from before the start, one from after it."""
    world = KafkaWorld()
    world.topic()
    world.append()
    world.reopen()
    world.append()
    return world


def test_entries_from_before_the_start_are_cold_and_what_is_not_there_is_not() -> None:
    world = world_before_and_after()
    units = [world.queue().find(offset) for offset in (0, 1, 2)]
    assert units[0] is not None and units[1] is not None and units[2] is None
    assert world.cold_reads.cold(units) == [(units[0].position, units[0].size)]


@pytest.mark.row("Q-03")
async def test_what_was_loaded_is_resident() -> None:
    world = world_before_and_after()
    cold = world.cold_reads.cold([world.queue().find(0)])
    await world.cold_reads.load(cold)
    assert world.cold_reads.cold([world.queue().find(0)]) == []


async def test_without_anything_cold_no_thread_is_asked() -> None:
    world = world_before_and_after()
    world.store.residency.fault_in = None  # type: ignore[assignment, method-assign]  # must not be called
    await world.cold_reads.load([])
