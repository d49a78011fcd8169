"""Reading: what is visible of a queue, under async and sync flush and between them."""

from tests.store.keeping import Keeping
from tests.store.reading import entries

from rockgate.gateway.topics.policy import FLUSH_EACH


def watermark(keeping: Keeping) -> int:
    return keeping.store.reader.high_watermark(keeping.queue("a"))


def shown(keeping: Keeping) -> int:
    """The offset behind the last that a reader gets."""
    slices = entries(keeping.store, keeping.queue("a"), 0, 1 << 30)
    return slices[-1].unit.base + slices[-1].unit.offset_count if slices else 0


def test_a_topic_that_is_turned_to_sync_takes_nothing_back_that_was_shown() -> None:
    keeping = Keeping()
    topic = keeping.topic("a")
    keeping.fill("a", 7)
    before = watermark(keeping)
    assert before == shown(keeping) == keeping.queue("a").next_offset
    keeping.store.topics.set_config({topic: {FLUSH_EACH: "1"}})
    assert watermark(keeping) == shown(keeping) == before
    keeping.fill("a", 5)
    assert watermark(keeping) == shown(keeping) == before
    keeping.store.flush()
    assert watermark(keeping) == shown(keeping) == keeping.queue("a").next_offset > before


def test_a_sync_topic_that_is_altered_shows_no_more_than_before() -> None:
    keeping = Keeping()
    topic = keeping.topic("a", flush_messages="1")
    keeping.fill("a", 7)
    assert watermark(keeping) == shown(keeping) == 0
    keeping.store.topics.set_config({topic: {FLUSH_EACH: "1", "retention.ms": "77"}})
    keeping.store.topics.grow({topic: 3})
    assert watermark(keeping) == shown(keeping) == 0
    keeping.store.flush()
    assert watermark(keeping) == keeping.queue("a").next_offset


def test_a_topic_that_is_turned_back_to_async_shows_everything_at_once() -> None:
    keeping = Keeping()
    topic = keeping.topic("a", flush_messages="1")
    keeping.fill("a", 7)
    keeping.store.topics.set_config({topic: {}})
    assert watermark(keeping) == shown(keeping) == keeping.queue("a").next_offset
