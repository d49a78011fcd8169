"""Servers and members that die, come, go and hang: nothing acknowledged is lost, order holds.

The faults are seeded. Messages may come twice where at-least-once allows it, and every message that
was acknowledged to a producer comes at least once.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest
from tests.budget import budget
from tests.gateway.server import ROOT, RunningServer, environment
from tests.sdk.consumer import ordered_process
from tests.sdk.consumer.ordered_process import Record, breach, ended
from tests.seeds import seeded
from tests.waiting import until

from rockgate.sdk import Client, Message, Producer, SdkError
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.received import Received

QUICK = ConsumerSettings(
    start=Start.BEGINNING, rebalance_s=0.5, persist_s=0.2, retry_s=0.2, local_retry_s=0.2
)
TOPIC, GROUP = "orders", "chaos"


class Members:
    """The members of a group, each with a client of its own, and what they have consumed."""

    def __init__(self, name_server: str, random: Random) -> None:
        self._name_server = name_server
        self._random = random
        self._living: dict[str, tuple[Consumer, Client]] = {}
        self._number = 0
        self.seen: list[bytes] = []

    async def join(self) -> None:
        """One more, if the server is there; if not, the next try may have more luck."""
        self._number += 1
        name = f"m{self._number}"
        client = Client(self._name_server, instance=name)
        consumer = Consumer(client=client, group=GROUP, settings=QUICK)

        @consumer.on(TOPIC)
        async def listen(message: Received) -> None:
            fate = self._random.random()
            if fate < 0.02 and message.tries < 3:
                raise ZeroDivisionError
            if fate < 0.04:
                # One that takes its time: others of its queue overtake it.
                for _ in range(self._random.randrange(200)):
                    await asyncio.sleep(0)
            self.seen.append(message.body)

        await client.open()
        try:
            await consumer.open()
        except SdkError:
            await client.close()
            return
        self._living[name] = (consumer, client)

    async def leave(self) -> None:
        """One less: it takes leave, or is gone in the middle of what it does."""
        if not self._living:
            return
        consumer, client = self._living.pop(self._random.choice(sorted(self._living)))
        if self._random.random() < 0.5:
            client.abort()
        with suppress(SdkError):
            await consumer.close(timeout_s=1.0)
        await client.close()

    async def close(self) -> None:
        """All of them."""
        while self._living:
            await self.leave()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._living)


async def produce(
    name_server: str, sent: list[bytes], is_over: asyncio.Event, topic: str = TOPIC
) -> None:
    """Send until it is over; what was acknowledged is in `sent`."""
    async with Producer(name_server, group="shop", timeout_s=2.0) as producer:
        number = 0
        while not is_over.is_set():
            number += 1
            body = b"%06d" % number
            with suppress(SdkError):
                await producer.send(Message(topic, body))
                sent.append(body)


@pytest.mark.timeout(300)
async def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    random = seeded()
    sent: list[bytes] = []
    is_over = asyncio.Event()
    # What fails waits for the third level.
    settings = ["remoting.delay_levels=1s 1s 1s 1s 1s"]
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        host, port = server.address("namesrv")
        name_server = f"{host}:{port}"
        members = Members(name_server, random)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(members.close)
            producing = asyncio.create_task(produce(name_server, sent, is_over))
            await until(lambda: sent, "the topic is there")
            for _ in range(budget("consumer_faults")):
                match random.randrange(4):
                    case 0 | 1:
                        await members.join()
                    case 2:
                        await members.leave()
                    case _:
                        await asyncio.to_thread(server.kill)
                        await asyncio.to_thread(server.restart)
                goal = len(sent) + 50
                await until(partial(_is_as_long, sent, goal), "more was sent")
            is_over.set()
            await producing
            await members.join()
            while not members.count:
                await members.join()
            await until(lambda: set(sent) <= set(members.seen), "everything acknowledged is read")
    assert sent


@pytest.mark.timeout(300)
async def test_a_storm_of_members_ends_with_every_queue_read_by_one(tmp_path: Path) -> None:
    random = seeded()
    settings = ["num.partitions=16"]
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        host, port = server.address("namesrv")
        name_server = f"{host}:{port}"
        sent = [b"%04d" % number for number in range(200)]
        async with Producer(name_server, group="shop") as producer:
            for body in sent[:100]:
                await producer.send(Message(TOPIC, body))
            members = Members(name_server, random)
            await asyncio.gather(*(members.join() for _ in range(budget("consumer_storm"))))
            while members.count > 3:
                leaving = min(5, members.count - 3)
                await asyncio.gather(*(members.leave() for _ in range(leaving)))
            for body in sent[100:]:
                await producer.send(Message(TOPIC, body))
            await until(lambda: set(sent) <= set(members.seen), "everything was read")
            await members.close()


class NameServerProxy:
    """Stands between members and the name server, and can be gone while brokers are there."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._port = 0
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def down(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._open:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            self._open.add(far_writer)
            await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))
            self._open.discard(far_writer)
        writer.close()
        self._open.discard(writer)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


class Processes:
    """Members in processes of their own, which consume in order."""

    def __init__(self, name_server: str, path: Path, random: Random) -> None:
        self._name_server = name_server
        self._path = path
        self._random = random
        self._record = Record(str(path))
        self._living: dict[str, asyncio.subprocess.Process] = {}
        self._number = 0

    async def start(self) -> None:
        self._number += 1
        name = f"p{self._number}"
        program = [sys.executable, "-m", "tests.sdk.consumer.ordered_process"]
        arguments = [self._name_server, name, str(self._path), str(self._random.random())]
        self._living[name] = await asyncio.create_subprocess_exec(
            *program,
            *arguments,
            cwd=ROOT,
            env=environment(),
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def end(self, *, is_killed: bool) -> None:
        """One less: killed, or asked to stop."""
        if self._living:
            name = self._random.choice(sorted(self._living))
            process = self._living.pop(name)
            if is_killed:
                process.kill()
            else:
                process.terminate()
            await process.wait()
            self._record.write("killed", name)

    def server_was_killed(self) -> None:
        self._record.write("server")

    async def close(self) -> None:
        while self._living:
            await self.end(is_killed=True)
        self._record.close()

    @property
    def lines(self) -> list[str]:
        return self._path.read_text().splitlines()

    @property
    def count(self) -> int:
        return len(self._living)


@pytest.mark.timeout(1200)  # the long budget
async def test_order_holds_in_each_queue_while_servers_and_members_are_killed(
    tmp_path: Path,
) -> None:
    random = seeded()
    sent: list[bytes] = []
    is_over = asyncio.Event()
    settings = [f"remoting.lock_expiry_ms={ordered_process.LOCK_EXPIRY_MS}", "num.partitions=4"]
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        host, port = server.address("namesrv")
        proxy = NameServerProxy(host, port)
        await proxy.up()
        async with AsyncExitStack() as stack:
            stack.callback(proxy.down)
            members = Processes(proxy.address, tmp_path / "record", random)
            stack.push_async_callback(members.close)
            producing = asyncio.create_task(
                produce(f"{host}:{port}", sent, is_over, ordered_process.TOPIC)
            )
            await until(lambda: sent, "the topic is there")
            await members.start()
            await members.start()
            await until(lambda: ended(members.lines), "the first is consumed")
            for _ in range(budget("consumer_order_faults")):
                match random.randrange(5):
                    case 0:
                        await members.start()
                    case 1:
                        await members.end(is_killed=True)
                    case 2:
                        await members.end(is_killed=False)
                    case 3:
                        proxy.down()
                    case _:
                        await asyncio.to_thread(server.kill)
                        members.server_was_killed()
                        await asyncio.to_thread(server.restart)
                if not members.count:
                    await members.start()
                goal = len(sent) + 100
                await until(partial(_is_as_long, sent, goal), "more was sent")
                if random.random() < 0.5:
                    proxy.down()
                    await proxy.up()
            is_over.set()
            await producing
            proxy.down()
            await proxy.up()
            bodies = {body.decode() for body in sent}
            await until(lambda: bodies <= ended(members.lines), "everything acknowledged is read")
        assert breach(members.lines) is None


def test_a_record_that_breaks_the_order_is_noticed() -> None:
    whole = ["begin a 0 0 1", "end a 0 0 x 2", "begin b 0 1 3", "failed b 0 1 4", "begin b 0 1 5"]
    assert breach(whole) is None
    assert breach([*whole, "begin b 0 2 6"]) == "begin b 0 2 6: 1 has not ended"
    overlap = [*whole, "begin a 0 1 6"]
    assert breach(overlap) == "begin a 0 1 6: b runs one since 5.0"
    assert breach(["server 4", *overlap]) is None
    assert breach([*whole, "killed b 6", "begin a 0 1 7"]) is None


def _is_as_long(found: list[bytes], count: int) -> bool:
    return len(found) >= count
