"""Brokers for tests of our own Python client: rockgate, and Apache RocketMQ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from behaviours.bringing import CannotRun, leave_out
from bench.peers import PeerError, RocketMQPeer, jars, rocketmq
from tests.gateway.remoting.client import Client as Reader
from tests.gateway.remoting.client import messages
from tests.gateway.server import RunningServer
from tests.waiting import until, wait_until

from rockgate.protocol.remoting.message import Message as Stored

QUEUE_COUNT = 4
APACHE_IMMUNE = 15
"""For how many seconds Apache's brokers are not to ask about half messages. They ask about one, and
deliver it twice, whose decision is still on its way: on a busy machine that may take seconds."""
_AUTH = "org.apache.rocketmq.auth"
_OPEN = """\
globalWhiteRemoteAddresses:
- 127.0.0.1
accounts:
- accessKey: RocketMQ
  secretKey: 12345678
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The addresses of a broker and its name server."""

    namesrv: str
    address: tuple[str, int]

    def read(self, topic: str) -> list[Stored]:
        """Every message of a topic, queue by queue."""
        reader = Reader(self.address)
        try:
            found: list[Stored] = []
            for queue in range(QUEUE_COUNT):
                offset = 0
                while (answer := reader.pull(topic, offset, queue=queue)).code == 0:
                    pulled = messages(answer)
                    offset += len(pulled)
                    found += pulled
            return found
        finally:
            reader.socket.close()

    async def when(self, topic: str, count: int, seconds: float = 30) -> list[Stored]:
        """The messages of a topic once there are this many."""
        await until(lambda: len(self.read(topic)) >= count, f"{count} of {topic}", seconds)
        return self.read(topic)

    def make_topic(self, name: str, queue_count: int) -> None:
        reader = Reader(self.address)
        try:
            answer = reader.ask(
                17,
                {
                    "topic": name,
                    "defaultTopic": "TBW102",
                    "readQueueNums": queue_count,
                    "writeQueueNums": queue_count,
                    "perm": 6,
                    "topicFilterType": "SINGLE_TAG",
                    "topicSysFlag": 0,
                    "order": "false",
                },
            )
            assert answer.code == 0, answer.remark
        finally:
            reader.socket.close()
        self.wait_for_route(name)

    def wait_for_route(self, topic: str) -> None:
        """Wait for a route: a real broker may register a topic after its response."""
        host, _, port = self.namesrv.partition(":")
        asker = Reader((host, int(port)))
        wait_until(lambda: asker.ask(105, {"topic": topic}).code == 0, f"{topic} is known")
        asker.socket.close()


@contextmanager
def rockgate_broker(folder: Path, *settings: str) -> Iterator[Broker]:
    """A rockgate server, which must stop cleanly."""
    with RunningServer(folder, settings=settings, rocketmq=True) as running:
        yield Broker(
            namesrv="{}:{}".format(*running.address("namesrv")),
            address=running.address("remoting"),
        )
        running.stop_cleanly()


@contextmanager
def apache_broker(line: str, *, folder: Path | None = None, **settings: str) -> Iterator[Broker]:
    """Apache RocketMQ of a version line, in a folder if its files are prepared there."""
    try:
        jars.fetch(line)
    except PeerError as reason:
        leave_out(CannotRun(str(reason)))
    # On a busy machine its sends wait for longer than its 200 ms, and are rejected.
    settings = {"waitTimeMillsInSendQueue": "30000", **settings}
    with RocketMQPeer(folder, line=line, settings=settings) as peer:
        yield Broker(namesrv="{}:{}".format(*peer.namesrv), address=peer.broker)


def stores_users(line: str, folder: Path) -> dict[str, str]:
    """Settings with which Apache RocketMQ stores users and permissions without demanding them.

    That is how rockgate starts. 4.9 reads a file in its folder, which exempts local clients.
    """
    if line == rocketmq.OLD:
        (folder / "conf").mkdir()
        (folder / "conf" / "plain_acl.yml").write_text(_OPEN)
        return {"aclEnable": "true"}
    kinds = ("authentication", "Authentication"), ("authorization", "Authorization")
    providers = {
        f"{kind}MetadataProvider": f"{_AUTH}.{kind}.provider.Local{name}MetadataProvider"
        for kind, name in kinds
    }
    return {**providers, "authConfigPath": str(folder / "auth")}
