"""Feeding and following over loopback sockets, in one process: connections end in every way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.crash.workload import CONFIG
from tests.seeds import seeded
from tests.store.replication.pair import Primary, Replica, assert_same
from tests.waiting import until

from rockgate.gateway.net.address import Address, socket_address
from rockgate.gateway.replication.config import ReplicationConfig
from rockgate.gateway.replication.feeding import Feeding
from rockgate.gateway.replication.following import Follower, Standing
from rockgate.protocol.frames import FrameReader
from rockgate.protocol.replication import frames
from rockgate.protocol.replication.frames import EpochMark, Hello, Refuse, Report, Start
from rockgate.store.replication.sending import SentLog

CLUSTER = "cluster"
SECRET = b"a secret of many bytes"


class Own:
    """What a replica says of itself."""

    def __init__(self, replica: Replica, *, cluster: str = CLUSTER, node: int = 2) -> None:
        self._replica = replica
        self.cluster = cluster
        self.node = node

    def standing(self) -> Standing:
        store = self._replica.store
        epochs = [EpochMark(*each) for each in store.epochs.all]
        size, newest = CONFIG.segment_bytes, store.epochs.current
        start, committed = store.log.start, store.commit.position
        return Standing(self.cluster, self.node, size, newest, start, committed, epochs)


class Listening:
    """A primary with its listener."""

    def __init__(self, primary: Primary, *, secret: bytes = b"", replicas_max: int = 16) -> None:
        self.primary = primary
        self.feeding = Feeding(
            SentLog(primary.store),
            cluster=CLUSTER,
            node=1,
            secret=secret,
            config=ReplicationConfig(replicas_max=replicas_max, retain_bytes=20_000),
            clock=asyncio.get_running_loop(),
        )

    async def open(self, port: int = 0) -> Address:
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(self.feeding.session, "127.0.0.1", port)
        return socket_address(self.server.sockets[0].getsockname())

    async def close(self) -> None:
        self.server.close()
        self.feeding.close()
        await self.server.wait_closed()


@asynccontextmanager
async def listening(
    primary: Primary, *, secret: bytes = b"", replicas_max: int = 16
) -> AsyncIterator[tuple[Listening, Address]]:
    one = Listening(primary, secret=secret, replicas_max=replicas_max)
    address = await one.open()
    try:
        yield one, address
    finally:
        await one.close()


@asynccontextmanager
async def following(
    replica: Replica, address: Address, *, secret: bytes = b"", own: Own | None = None
) -> AsyncIterator[Follower]:
    follower = Follower(replica.following, own or Own(replica), address, secret)
    try:
        yield follower
    finally:
        await follower.close()


def caught_up(primary: Primary, replica: Replica) -> bool:
    return replica.store.log.end == primary.store.log.end


async def test_a_replica_gets_what_there_is_and_what_comes() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    async with (
        listening(primary, secret=SECRET) as (one, address),
        following(replica, address, secret=SECRET) as follower,
    ):
        for _ in range(5):
            primary.workload.append_batch()
            primary.store.flush()
            one.feeding.wake()
            await until(lambda: caught_up(primary, replica), "the replica has it")
        await until(
            lambda: replica.store.commit.position == primary.store.commit.position,
            "it is committed there too",
        )
        [session] = one.feeding.sessions
        await until(lambda: session.applied == primary.store.log.end, "it is reported")
        assert follower.is_connected
        assert follower.lag_bytes == 0
    assert_same(primary.store, replica.store)


async def test_a_connection_that_breaks_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rockgate.gateway.replication.following.AGAIN_SECONDS", 0.01)
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    async with listening(primary) as (one, address), following(replica, address) as follower:
        for count in range(1, 6):
            primary.workload.create_topic()
            primary.workload.append_batch()
            await until(lambda: follower.connected_count >= count, "it is connected")  # noqa: B023
            if count < 5:
                for session in list(one.feeding.sessions):
                    session.close("a test")
        await until(lambda: caught_up(primary, replica), "the replica has it")
    assert_same(primary.store, replica.store)


async def test_where_the_log_is_to_be_cut_or_copied_following_ends() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    primary.store.flush()
    kept = primary.disk.killed()
    primary.workload.append_batch()
    primary.workload.append_message()
    replica.follow(primary.store)
    end = primary.store.log.end
    primary.restart_from(kept)
    async with listening(primary) as (_, address), following(replica, address) as follower:
        outcome = await follower.outcome
    assert not outcome.is_copy
    assert outcome.cut < end
    late, empty = Primary(random), Replica(random)
    while late.store.log.start == 0:
        late.workload.run(20)
        late.workload.tick()
    async with listening(late) as (_, address), following(empty, address) as follower:
        assert (await follower.outcome).is_copy
    other = Replica(random)
    stranger = Primary(random)
    other.follow(stranger.store)
    async with listening(primary) as (_, address), following(other, address) as follower:
        assert (await follower.outcome).is_copy


async def test_a_primary_that_lacks_what_it_said_was_committed_is_not_followed() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    primary.store.flush()
    backup = primary.disk.killed()
    primary.workload.append_batch()
    primary.store.flush()
    replica.follow(primary.store)
    end = replica.store.log.end
    primary.restart_from(backup)
    async with listening(primary) as (_, address), following(replica, address) as follower:
        await until(lambda: "was committed" in follower.failure, "it says why")
        assert not follower.outcome.done()
    assert replica.store.log.end == end


@pytest.mark.parametrize(
    ("own", "secret", "why"),
    [
        ({"cluster": "another"}, SECRET, "cluster"),
        ({"node": 1}, SECRET, "node 1"),
        ({}, b"", "secret"),
        ({}, b"another secret of many bytes", "secret"),
    ],
)
async def test_a_replica_that_does_not_belong_here_is_refused(
    own: dict[str, object], secret: bytes, why: str
) -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    replica.follow(primary.store)
    primary.workload.append_batch()
    stranger = Own(replica, **own)  # type: ignore[arg-type]
    async with (
        listening(primary, secret=SECRET) as (_, address),
        following(replica, address, secret=secret, own=stranger) as follower,
    ):
        await until(lambda: why in follower.failure, "it says why")
        assert not caught_up(primary, replica)


async def test_segments_stay_for_a_replica_within_the_limit() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    async with listening(primary) as (one, address):
        async with following(replica, address) as follower:
            await until(lambda: follower.is_connected, "it is connected")
            await until(lambda: caught_up(primary, replica), "the replica has it")
            [session] = one.feeding.sessions
            await until(lambda: session.applied == primary.store.log.end, "it is reported")
        await until(lambda: not one.feeding.sessions, "it is gone")
        place = primary.store.log.end
        primary.workload.append_batch()
        assert one.feeding.pinned() == place, "it may come back"
        while primary.store.log.end < place + 30_000:
            primary.workload.append_messages()
            primary.workload.create_topic()
        assert one.feeding.pinned() == primary.store.log.end - 20_000


# A peer that speaks for itself


class Peer:
    """A connection of raw frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._frames = FrameReader(frames.FRAME_BYTES_MAX)
        self._read: list[frames.Frame] = []

    async def frame(self) -> frames.Frame | None:
        """The next frame; None at the end."""
        while not self._read:
            data = await self.reader.read(65536)
            if not data:
                return None
            bodies = self._frames.feed(data)
            self._read += [frames.decode(body, of_replica=False) for body in bodies]
        return self._read.pop(0)

    async def is_closed(self) -> bool:
        """Wait until the server closes it."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass
        return True


async def met(address: Address) -> Peer:
    peer = Peer(*await asyncio.open_connection(address.host, address.port))
    assert isinstance(await peer.frame(), frames.Greeting)
    return peer


EMPTY = Hello(CLUSTER, bytes(16), 2, CONFIG.segment_bytes, 0, True, 0, 0, bytes(16), bytes(32), ())


async def test_what_is_no_frame_or_not_due_ends_the_connection() -> None:
    primary = Primary(seeded())
    primary.workload.create_topic()
    hello = frames.encode(EMPTY)
    far = frames.encode(Report(1, 1 << 40, 0, 0))
    other_epoch = frames.encode(Report(9, 0, 0, 0))
    start = frames.encode(Start(1, 0, 0, 1, bytes(32), CLUSTER))
    async with listening(primary) as (one, address):
        for sent in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"\0\0\0\0",
            b"\x7f\xff\xff\xff",
            start,
            frames.encode(Report(1, 0, 0, 0)),
            hello + hello,
            hello + far,
            hello + other_epoch,
        ):
            peer = await met(address)
            peer.writer.write(sent)
            assert await peer.is_closed(), sent
            peer.writer.close()
        await until(lambda: not one.feeding.sessions, "all are gone")


async def test_a_refusal_says_why() -> None:
    primary = Primary(seeded())
    async with listening(primary, replicas_max=1) as (_, address):
        for hello, reason in (
            (EMPTY._replace(segment_bytes=4096), frames.OTHER_SEGMENT_SIZE),
            (EMPTY._replace(epoch=9), frames.OLDER_EPOCH),
            (EMPTY._replace(cluster="another"), frames.OTHER_CLUSTER),
        ):
            peer = await met(address)
            peer.writer.write(frames.encode(hello))
            refusal = await peer.frame()
            assert isinstance(refusal, Refuse)
            assert refusal.reason == reason
            assert await peer.is_closed()
            peer.writer.close()
        first = await met(address)
        second = Peer(*await asyncio.open_connection(address.host, address.port))
        refusal = await second.frame()
        assert isinstance(refusal, Refuse)
        assert refusal.reason == frames.BUSY
        for each in (first, second):
            each.writer.close()


async def test_an_idle_connection_has_signs_of_life() -> None:
    primary = Primary(seeded())
    primary.store.flush()
    async with listening(primary) as (_, address):
        peer = await met(address)
        peer.writer.write(frames.encode(EMPTY))
        assert isinstance(await peer.frame(), Start)
        while (data := await peer.frame()) is not None:
            assert isinstance(data, frames.Data)
            if not data.data and data.position == primary.store.log.end:
                break
        again = await peer.frame()
        assert isinstance(again, frames.Data)
        assert not again.data
        peer.writer.close()


async def test_a_replica_that_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rockgate.gateway.replication.feeding.SILENCE_SECONDS", 0.05)
    async with listening(Primary(seeded())) as (_, address):
        peer = await met(address)
        assert await peer.is_closed()
        peer.writer.close()
