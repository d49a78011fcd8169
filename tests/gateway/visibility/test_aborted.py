from __future__ import annotations

import pytest
from tests.gateway.kafka.world import KafkaWorld

from rockgate.gateway.transcode.messages import Origin
from rockgate.gateway.visibility.aborted import AbortedBatches


@pytest.mark.parametrize(
    ("base", "producer_id", "expected"),
    [(4, 7, False), (5, 7, True), (8, 7, True), (8, 6, False), (10, 7, False), (12, 7, False)],
)
def test_a_batch_is_hidden_between_its_producer_s_first_and_its_marker(
    base: int, producer_id: int, expected: bool
) -> None:
    world = KafkaWorld()
    topic = world.topic()
    stable_offsets = world.folds.stable_offsets
    stable_offsets.wrote(topic.id, 0, 7, 5)
    stable_offsets.ended((topic.id, 0), 7, first=5, offset=9, is_abort=True, high_watermark=10)
    is_aborted = AbortedBatches(world.store.topics, stable_offsets)
    assert is_aborted(Origin(b"orders", topic.created_position, 0, base, producer_id)) is expected


def test_a_batch_of_a_topic_that_is_gone_is_not_looked_up() -> None:
    world = KafkaWorld()
    is_aborted = AbortedBatches(world.store.topics, world.folds.stable_offsets)
    assert not is_aborted(Origin(b"gone", 0, 0, 0, 7))
