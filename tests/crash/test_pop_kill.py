"""kill -9 of a real server under consumers that pop, acknowledge, extend and forget.

Whatever was answered holds after each restart: what was acknowledged never comes again, what was
not acknowledged comes again once its time is over, and nothing is delivered twice before.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest
from tests.budget import budget
from tests.gateway.remoting.popclient import PopClient
from tests.gateway.server import RunningServer
from tests.seeds import seeded
from tests.waiting import wait_until

from rockgate.protocol.remoting.codes import ResponseCode

TOPIC = "orders"
MEMBERS = 4
SOON_MS, LATE_MS = 1_500, 6 * 3_600_000
SLACK_MS = 250
"""How much earlier than its deadline a message may seem to come: two processes read the clock."""


class Ledger:
    """What members were answered, over all runs of the server.

    Each message is known by its body.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent: set[bytes] = set()
        self.acknowledged: set[bytes] = set()
        self.unsure: set[bytes] = set()
        """Acknowledged without an answer: they may come again."""
        self.held_ms: dict[bytes, int] = {}
        """Until when no other member may have it."""
        self.faults: list[str] = []

    def take(self, body: bytes, now_ms: int, deadline_ms: int) -> None:
        with self._lock:
            if body in self.acknowledged:
                self.faults.append(f"{body!r} came again after it was acknowledged")
            if now_ms + SLACK_MS < self.held_ms.get(body, 0):
                self.faults.append(f"{body!r} was handed out while another member held it")
            self.held_ms[body] = deadline_ms

    def extend(self, body: bytes, deadline_ms: int) -> None:
        with self._lock:
            self.held_ms[body] = min(self.held_ms[body], deadline_ms)

    def finish(self, body: bytes, *, is_answered: bool) -> None:
        with self._lock:
            (self.acknowledged if is_answered else self.unsure).add(body)


class Member(threading.Thread):
    """Pops until the server is gone."""

    def __init__(self, address: tuple[str, int], ledger: Ledger, random: Random) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._ledger = ledger
        self._random = random
        self.start()

    def run(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            client = PopClient(self._address)
            try:
                while True:
                    self._round(client)
            finally:
                client.socket.close()

    def _round(self, client: PopClient) -> None:
        random, ledger = self._random, self._ledger
        count = random.choice((1, 5, 32))
        for each in client.take(TOPIC, maxMsgNums=count, invisibleTime=SOON_MS, pollTime=100):
            body = bytes(each.message.body)
            _, pop_ms, invisible_ms, *_ = map(int, each.handle.split(" ")[:3])
            ledger.take(body, pop_ms, pop_ms + invisible_ms)
            what = random.random()
            if what < 0.7:
                # If the handle is stale, another member holds it by now, and success says nothing.
                is_current = time.time() * 1000 < pop_ms + invisible_ms - SLACK_MS
                try:
                    answer = client.ack(each)
                except (ConnectionError, TimeoutError):
                    ledger.finish(body, is_answered=False)
                    raise
                is_answered = is_current and time.time() * 1000 < pop_ms + invisible_ms
                ledger.finish(body, is_answered=is_answered and answer.code == 0)
            elif what < 0.8:
                # Whether it is done or not, it is not invisible for longer than it was.
                client.extend(each, 100)
                ledger.extend(body, 0)


def send(address: tuple[str, int], ledger: Ledger, count: int) -> None:
    client = PopClient(address)
    for _ in range(count):
        body = b"%06d" % len(ledger.sent)
        assert client.publish(TOPIC, body, queue=len(ledger.sent) % 4).code == ResponseCode.SUCCESS
        ledger.sent.add(body)
    client.socket.close()


def drain(address: tuple[str, int], ledger: Ledger) -> set[bytes]:
    """Take and acknowledge whatever comes, until nothing more is missing."""
    client = PopClient(address)
    found: set[bytes] = set()
    missing = ledger.sent - ledger.acknowledged - ledger.unsure

    def is_complete() -> bool:
        for each in client.take(TOPIC, invisibleTime=LATE_MS, pollTime=200):
            body = bytes(each.message.body)
            if body in ledger.acknowledged:
                ledger.faults.append(f"{body!r} came again after it was acknowledged")
            assert client.ack(each).code == ResponseCode.SUCCESS
            found.add(body)
        return found >= missing

    wait_until(is_complete, "what was not acknowledged comes again")
    # Nothing that is due now may be left: a last look after the last deadline.
    while client.take(TOPIC, invisibleTime=LATE_MS, pollTime=SOON_MS):
        pass
    client.socket.close()
    return found


@pytest.mark.parametrize("flush", ["async", "sync"])
def test_what_was_acknowledged_stays_finished_and_nothing_else_is_lost(
    flush: str, tmp_path: Path
) -> None:
    random = seeded()
    ledger = Ledger()
    settings = [f"store.flush={flush}", "store.snapshot_interval_ms=200"]
    rounds = max(2, budget("kill_rounds") // 4)
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        for _ in range(rounds):
            address = server.address("remoting")
            send(address, ledger, 300)
            members = [Member(address, ledger, Random(random.random())) for _ in range(MEMBERS)]
            enough = len(ledger.acknowledged) + random.randint(20, 150)
            wait_until(lambda: len(ledger.acknowledged) >= enough, "members get somewhere")  # noqa: B023
            server.kill()
            for member in members:
                member.join()
            server.restart()
        found = drain(server.address("remoting"), ledger)
        assert "Traceback" not in server.log
    assert ledger.faults == []
    assert ledger.sent <= found | ledger.acknowledged | ledger.unsure
    sys.stdout.write(
        f"{rounds} kills with {flush} flush, {len(ledger.acknowledged)} acknowledged, "
        f"{len(found)} came again or at last\n"
    )
