"""Broadcasting against a real server: every member gets everything, and remembers it by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.sdk import Client, Message, Producer
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.offsets.local import LocalOffsets, OffsetsDamaged
from rockgate.sdk.consumer.offsets.store import FileOffsets, default_folder
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.settings import ConsumerSettings, Model, Start
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

numbers = count()
QUEUE = Queue("orders", "a", 0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("broadcasting"), rocketmq=True) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"news-{next(numbers)}"


async def send(name_server: str, topic: str, *bodies: bytes) -> None:
    async with Producer(name_server, group="shop") as producer:
        for body in bodies:
            await producer.send(Message(topic, body))


def broadcasting(folder: Path, *, is_orderly: bool = False) -> ConsumerSettings:
    return ConsumerSettings(
        model=Model.BROADCASTING,
        start=Start.BEGINNING,
        rebalance_s=0.5,
        is_orderly=is_orderly,
        suspend_s=0.02,
        offsets_folder=folder,
    )


def numbered(begin: int, end: int) -> list[bytes]:
    return [b"%03d" % number for number in range(begin, end)]


@pytest.mark.row("MODEL-2", "REB-6")
@pytest.mark.parametrize("is_orderly", [False, True])
async def test_every_member_gets_everything(
    name_server: str, topic: str, tmp_path: Path, is_orderly: bool
) -> None:
    await send(name_server, topic, *numbered(0, 4))
    seen: dict[str, list[bytes]] = {"one": [], "two": []}

    def member(name: str) -> Consumer:
        settings = broadcasting(tmp_path / name, is_orderly=is_orderly)
        consumer = Consumer(name_server, group="b-all", settings=settings, instance=name)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            seen[name].append(message.body)

        return consumer

    async with member("one"), member("two"):
        await send(name_server, topic, *numbered(4, 20))
        await until(lambda: all(len(each) >= 20 for each in seen.values()), "all, at both")
    assert all(sorted(each) == numbered(0, 20) for each in seen.values())


@pytest.mark.row("OFF-1", "OFF-7", "START-8")
async def test_a_member_continues_where_its_file_says(
    name_server: str, topic: str, tmp_path: Path
) -> None:
    await send(name_server, topic, *numbered(0, 10))
    found: list[bytes] = []
    for how_many in (6, 4):
        settings = broadcasting(tmp_path)
        async with Consumer(name_server, group="b-file", topics=[topic], settings=settings) as c:
            async with asyncio.timeout(30):
                for _ in range(how_many):
                    message = await anext(c)
                    found.append(message.body)
                    await message.ack()
    assert sorted(found) == numbered(0, 10)
    saved = LocalOffsets(tmp_path).load()
    assert sum(saved.values()) == 10
    assert {queue.topic for queue in saved} == {topic}
    # It was not sent to any broker.
    async with Client(name_server) as client:
        calls = BrokerCalls(client, "b-file")
        assert {await calls.committed(queue) for queue in saved} == {None}


@pytest.mark.row("CON-9", "START-5")
async def test_what_fails_is_dropped_and_does_not_come_again(
    name_server: str, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await send(name_server, topic, *numbered(0, 4))
    seen: list[bytes] = []
    consumer = Consumer(name_server, group="b-fail", settings=broadcasting(tmp_path))

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        seen.append(message.body)
        if message.body == b"002":
            raise ZeroDivisionError

    async with consumer:
        await until(lambda: len(seen) == 4, "all of them")
        await send(name_server, topic, b"004")
        await until(lambda: len(seen) >= 5, "one more")
    assert sorted(seen) == numbered(0, 5)
    assert "broadcasting does not retry" in caplog.text
    assert sum(LocalOffsets(tmp_path).load().values()) == 5


@pytest.mark.row("START-6")
async def test_a_broadcasting_client_has_the_same_id_at_every_start(
    name_server: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    await send(name_server, topic, b"x")
    settings = ConsumerSettings(model=Model.BROADCASTING, start=Start.BEGINNING)
    for _ in range(2):
        async with Consumer(name_server, group="b-id", topics=[topic], settings=settings) as c:
            await send(name_server, topic, b"y")
            async with asyncio.timeout(30):
                await (await anext(c)).ack()
    (folder,) = (tmp_path / ".rocketmq_offsets").iterdir()
    assert folder.name.endswith("@DEFAULT")
    assert folder / "b-id" == default_folder(folder.name, "b-id")
    assert sum(LocalOffsets(folder / "b-id").load().values()) == 2


async def test_offsets_that_cannot_be_read_are_an_error_at_the_start(
    name_server: str, topic: str, tmp_path: Path
) -> None:
    await send(name_server, topic, b"x")
    (tmp_path / "offsets.json").write_bytes(b"nothing of ours")
    with pytest.raises(OffsetsDamaged, match="Remove"):
        await Consumer(
            name_server, group="b-bad", topics=[topic], settings=broadcasting(tmp_path)
        ).open()


# The file as a store


@pytest.mark.row("OFF-7")
async def test_what_was_persisted_is_read_at_the_next_start(tmp_path: Path) -> None:
    store = FileOffsets(LocalOffsets(tmp_path))
    await store.load()
    assert await store.read(QUEUE) is None
    offsets = OffsetTable()
    offsets.update(QUEUE, 7, increase_only=True)
    await store.persist(offsets)
    assert offsets.unpersisted() == {}
    # A queue that is no longer held is not forgotten.
    offsets.remove(QUEUE)
    other = Queue("orders", "a", 1)
    offsets.update(other, 3, increase_only=True)
    await store.persist(offsets)
    again = FileOffsets(LocalOffsets(tmp_path))
    await again.load()
    assert (await again.read(QUEUE), await again.read(other)) == (7, 3)


async def test_a_disk_that_refuses_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "offsets"
    folder.write_bytes(b"a file where a folder should be")
    store = FileOffsets(LocalOffsets(folder))
    offsets = OffsetTable()
    offsets.update(QUEUE, 7, increase_only=True)
    await store.persist(offsets)
    assert offsets.unpersisted() == {QUEUE: 7}
    folder.unlink()
    await store.persist(offsets)
    assert offsets.unpersisted() == {}
