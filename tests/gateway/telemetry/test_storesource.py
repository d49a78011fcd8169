import re

from tests.gateway.kafka.world import World

from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.gateway.telemetry.storesource import StoreSource


def told(source: StoreSource) -> dict[str, float]:
    page = Exposition()
    list(source(page))
    return {
        name: float(value)
        for name, value in re.findall(r"^(rockgate_\w+) (\S+)$", page.text(), flags=re.M)
    }


def test_the_log_s_positions_and_fsyncs_are_told() -> None:
    world = World()
    source = StoreSource(world.store)
    world.topic()
    world.append()
    before = told(source)
    assert before["rockgate_log_end_position"] == world.store.log.end
    assert before["rockgate_log_flushed_position"] < before["rockgate_log_end_position"]
    world.store.flush()
    after = told(source)
    assert after["rockgate_log_flushed_position"] == world.store.log.end
    assert after["rockgate_fsync_seconds_count"] == before["rockgate_fsync_seconds_count"] + 1


def test_segments_are_told_with_what_is_needed_of_them() -> None:
    world = World()
    source = StoreSource(world.store)
    world.topic()
    while len(world.store.segments) < 3:
        world.append(value=b"x" * 50_000)
    found = told(source)
    size = world.store.segments.segment_size
    assert found["rockgate_segments"] == 3
    assert found["rockgate_segment_bytes"] == 3 * size
    known = 2 - found["rockgate_segments_unweighed"]
    weighed = found["rockgate_segment_live_bytes"] + found["rockgate_segment_dead_bytes"]
    assert weighed == known * size
