import re

from tests.gateway.kafka.world import KafkaWorld
from tests.store.waiting_store import WaitingStore

from rockgate.gateway.compose.metrics.store import StoreSource
from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.store.delay.units import FILE_UNITS, UNIT


def told(source: StoreSource) -> dict[str, float]:
    page = Exposition()
    list(source(page))
    return {
        name: float(value)
        for name, value in re.findall(r"^(rockgate_\w+) (\S+)$", page.text(), flags=re.M)
    }


def test_the_log_s_positions_and_fsyncs_are_reported() -> None:
    world = KafkaWorld()
    source = StoreSource(world.store, Stalls(world.clock))
    world.topic()
    world.append()
    before = told(source)
    assert before["rockgate_log_end_position"] == world.store.log.end
    assert before["rockgate_log_flushed_position"] < before["rockgate_log_end_position"]
    world.store.flush()
    after = told(source)
    assert after["rockgate_log_flushed_position"] == world.store.log.end
    assert after["rockgate_fsync_seconds_count"] == before["rockgate_fsync_seconds_count"] + 1


def test_segments_are_reported_with_what_is_needed_of_them() -> None:
    world = KafkaWorld()
    source = StoreSource(world.store, Stalls(world.clock))
    world.topic()
    while len(world.store.segments) < 3:
        world.append(value=b"x" * 50_000)
    found = told(source)
    size = world.store.segments.segment_size
    assert found["rockgate_segments"] == 3
    assert found["rockgate_segment_bytes"] == 3 * size
    known = 2 - found["rockgate_segments_unaccounted"]
    weighed = found["rockgate_segment_live_bytes"] + found["rockgate_segment_dead_bytes"]
    assert weighed == known * size


def test_what_waits_and_what_became_of_it_is_reported() -> None:
    world = WaitingStore()
    source = StoreSource(world.store, Stalls(world.clock))
    for wait_ms in (0, 0, 60_000, 90_000, 90_000):
        world.schedule(b"one", world.clock.now_ms() + wait_ms)
    world.settle()
    world.store.topics.delete([world.store.topics.get("target")])
    world.pass_time(60_000)
    found = told(source)
    assert found["rockgate_delay_waiting"] == 2
    assert found["rockgate_delay_delivered_total"] == 2
    assert found["rockgate_delay_dropped_total"] == 1
    assert found["rockgate_delay_retries_total"] == found["rockgate_delay_lost_total"] == 0


def test_how_late_what_is_due_has_become_is_reported() -> None:
    world = WaitingStore()
    source = StoreSource(world.store, Stalls(world.clock))
    assert told(source)["rockgate_delay_schedule_bytes"] == 0
    world.schedule(b"one", world.clock.now_ms() + 1_000)
    size = told(source)["rockgate_delay_schedule_bytes"]
    assert size == FILE_UNITS * UNIT.size
    assert told(source)["rockgate_delay_late_seconds"] == 0
    world.clock.advance(6_000)
    while world.store.delay.turn(world.store.deliveries.now_ms(), 500):
        pass
    assert told(source)["rockgate_delay_late_seconds"] == 5
    world.settle()
    assert told(source)["rockgate_delay_late_seconds"] == 0
