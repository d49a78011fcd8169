"""Compressed bodies: what the loop opens by itself, and what a thread opens for it."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Iterator

import pytest
from tests.gateway.kafka.fetcher import ONE, Answer, Asked, Fetcher
from tests.gateway.kafka.world import KafkaWorld
from tests.waiting import until
from tests.world import NOW_MS

from rockgate.gateway.transcode import compressed_bodies as module
from rockgate.gateway.transcode.compressed_bodies import (
    AT_ONCE_MAX,
    COMPRESSED_BYTES_MAX,
    INFLATED_BYTES_MAX,
    CompressedBodies,
)
from rockgate.protocol.entry import COMPRESSED
from rockgate.protocol.remoting.compression import Compression
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.store.config import StoreConfig
from rockgate.store.log.commitlog import Draft
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueruns import Indexes
from rockgate.store.queues.view import QueueView

ZLIB = Compression.ZLIB
LARGE = bytes(4 * INFLATED_BYTES_MAX)
BOMB = zlib.compress(LARGE)
QUEUE = Queue(b"orders", bytes(16), 0, Indexes())
WIDE = StoreConfig(segment_bytes=1 << 24, populate_ahead_bytes=1 << 16, key_index=False)


class Threads:
    """Where bodies are opened, and how many at the same time; a thread stops until it may go."""

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.may_go.set()
        self.count = self.now = self.most = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        assert threading.current_thread() is not threading.main_thread()
        with self._lock:
            self.count += 1
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.may_go.wait(60)
        with self._lock:
            self.now -= 1


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Threads]:
    watched, tried = Threads(), module._try

    def watching(data: bytes | memoryview, kind: Compression) -> bytes | MalformedContent:
        watched.begin()
        return tried(data, kind)

    monkeypatch.setattr(module, "_try", watching)
    yield watched
    watched.may_go.set()


async def test_a_small_body_is_opened_at_once(threads: Threads) -> None:
    assert CompressedBodies().body(QUEUE, 0, zlib.compress(b"body"), ZLIB) == b"body"
    assert threads.count == 0


@pytest.mark.parametrize("data", [BOMB, zlib.compress(bytes(10)) + bytes(COMPRESSED_BYTES_MAX)])
async def test_a_large_body_and_one_that_becomes_large_are_opened_by_a_thread(
    threads: Threads, data: bytes
) -> None:
    told: list[QueueView] = []
    opening = CompressedBodies(told.append)
    assert opening.body(QUEUE, 7, data, ZLIB) is None
    await until(lambda: told, "it is open")
    assert told == [QUEUE]
    assert opening.body(QUEUE, 7, data, ZLIB) == zlib.decompressobj().decompress(data)
    assert threads.count == 1


async def test_a_body_is_opened_once_however_often_it_is_asked_for(threads: Threads) -> None:
    told: list[QueueView] = []
    opening = CompressedBodies(told.append)
    threads.may_go.clear()
    for _ in range(100):
        assert opening.body(QUEUE, 7, BOMB, ZLIB) is None
    threads.may_go.set()
    await until(lambda: told, "it is open")
    assert (threads.count, told) == (1, [QUEUE])


async def test_a_large_body_that_cannot_be_opened_says_so(threads: Threads) -> None:
    told: list[QueueView] = []
    opening = CompressedBodies(told.append)
    assert opening.body(QUEUE, 7, bytes(COMPRESSED_BYTES_MAX), ZLIB) is None
    await until(lambda: told, "it was tried")
    for _ in range(2):
        with pytest.raises(MalformedContent):
            opening.body(QUEUE, 7, bytes(COMPRESSED_BYTES_MAX), ZLIB)
    assert threads.count == 1


async def test_a_few_threads_open_many_bodies_one_after_the_other(threads: Threads) -> None:
    told: list[QueueView] = []
    opening = CompressedBodies(told.append)
    threads.may_go.clear()
    for position in range(10):
        opening.body(QUEUE, position, BOMB, ZLIB)
    await until(lambda: threads.now == AT_ONCE_MAX, "as many as may are at it")
    threads.may_go.set()
    await until(lambda: len(told) == 10, "all are open")
    assert threads.most == AT_ONCE_MAX
    assert opening.body(QUEUE, 9, BOMB, ZLIB) == LARGE


async def test_opened_bodies_are_kept_within_a_bound_the_last_one_always(
    threads: Threads,
) -> None:
    told: list[QueueView] = []
    opening = CompressedBodies(told.append, cache_bytes_max=len(LARGE) // 2)
    for position in range(3):
        opening.body(QUEUE, position, BOMB, ZLIB)
        await until(lambda wanted=position + 1: len(told) == wanted, "it is open")  # type: ignore[misc]  # bound now
        assert opening.cache.size == len(LARGE)
        assert opening.body(QUEUE, position, BOMB, ZLIB) == LARGE
    assert opening.body(QUEUE, 0, BOMB, ZLIB) is None
    await until(lambda: len(told) == 4, "it is opened again")


# Under a fetch


def compressed(world: KafkaWorld, body: bytes) -> None:
    draft = Draft(b"", 0, 0, zlib.compress(body), b"", born_ms=NOW_MS, sys_flag=COMPRESSED)
    world.store.appender.message(world.queue(), draft)


async def test_a_fetch_gets_what_is_before_a_large_body_and_then_the_body(
    threads: Threads,
) -> None:
    world = KafkaWorld(WIDE)
    world.topic()
    world.message()
    compressed(world, LARGE)
    world.message()
    fetcher = Fetcher(world)
    threads.may_go.clear()
    assert fetcher.fetch({ONE: Asked()}).offsets() == [0]
    waiting = fetcher.waiting({ONE: Asked(1)}, wait_ms=5_000)
    await asyncio.sleep(0)
    assert not waiting.done()
    threads.may_go.set()
    await until(waiting.done, "the fetch is answered when the body is open")
    [record] = Answer(fetcher, waiting.result()).records()
    assert (record.offset, record.value) == (1, LARGE)
    assert fetcher.fetch({ONE: Asked(2)}).offsets() == [2]


async def test_a_fetch_that_waits_gets_a_large_body_that_arrives(threads: Threads) -> None:
    world = KafkaWorld(WIDE)
    world.topic()
    fetcher = Fetcher(world)
    waiting = fetcher.waiting({ONE: Asked()}, wait_ms=5_000)
    compressed(world, LARGE)
    await until(waiting.done, "the fetch is answered when the body is open")
    assert [each.value for each in Answer(fetcher, waiting.result()).records()] == [LARGE]


async def test_in_a_session_a_body_that_was_opened_between_two_fetches_is_news(
    threads: Threads,
) -> None:
    world = KafkaWorld(WIDE)
    world.topic()
    fetcher = Fetcher(world)
    session = fetcher.fetch({ONE: Asked()}, session=(0, 0)).session_id
    compressed(world, LARGE)
    threads.may_go.clear()
    assert fetcher.fetch({}, session=(session, 1)).sizes.get(ONE, 0) == 0
    threads.may_go.set()
    await until(lambda: world.opening.cache.size, "it is open")
    assert fetcher.fetch({}, session=(session, 2)).offsets() == [0]
