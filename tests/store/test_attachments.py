"""What is attached to a store: each once."""

import pytest
from tests.store.keeping import Keeping


def test_nothing_is_attached_twice() -> None:
    world = Keeping()
    seen: list[int] = []
    world.store.attach(on_append=lambda queue: seen.append(queue.next_offset))
    with pytest.raises(ValueError, match="Already attached: on_append"):
        world.store.attach(on_append=lambda queue: None, on_flushed=seen.append)
    world.store.attach(on_flushed=seen.append)
    world.topic("a")
    world.fill("a", 1)
    world.store.flush()
    assert seen == [1, world.store.log.end]
