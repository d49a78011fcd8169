"""What every client may expect of a server that is stopped, or killed, during its work."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import ClassVar

import pytest
from behaviours.driver import Driver, Message, Place, Promise, Sending
from behaviours.features import LOSSLESS, SYNC
from behaviours.steps import new_topic, read_all, send_all
from tests.budget import budget
from tests.gateway.server import RunningServer
from tests.seeds import seeded
from tests.waiting import wait_until


class Stream:
    """Sends numbered messages on its own thread until it is stopped."""

    def __init__(self, driver: Driver, bootstrap: str, topic: str, sending: Sending) -> None:
        self._producer = driver.producer(bootstrap, sending)
        self._topic = topic
        self.promises: list[Promise] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(0.001):
            message = Message(value=b"%d" % len(self.promises), partition=0)
            self.promises.append(self._producer.send(self._topic, message))

    def end(self) -> list[Place]:
        """Stop sending; return where the server stored each message."""
        self._is_over.set()
        self._thread.join()
        try:
            self._producer.flush()
            return [promise.result() for promise in self.promises]
        finally:
            self._producer.close()


class Surviving:
    """Mixed into each client's test class."""

    driver: ClassVar[Driver]

    @pytest.mark.feature(LOSSLESS)
    @pytest.mark.parametrize(
        ("how", "is_idempotent"),
        [
            pytest.param("kill", True, id="kill -9, idempotent"),
            pytest.param("kill", False, id="kill -9", marks=pytest.mark.long),
            pytest.param("stop", True, id="restart, idempotent", marks=pytest.mark.long),
            pytest.param("stop", False, id="restart", marks=pytest.mark.long),
        ],
    )
    def test_nothing_acknowledged_is_lost_when_the_server_comes_back(
        self, tmp_path: Path, how: str, is_idempotent: bool
    ) -> None:
        random, topic = seeded(), new_topic("surviving")
        with RunningServer(tmp_path) as server:
            sending = Sending(is_idempotent=is_idempotent)
            stream = Stream(self.driver, server.bootstrap, topic, sending)
            for _ in range(budget("compat_kills")):
                more = len(stream.promises) + random.randrange(50, 300)
                wait_until(lambda more=more: len(stream.promises) >= more, "more is sent")
                if how == "kill":
                    server.kill()
                else:
                    assert server.stop() == 0
                server.restart()
            more = len(stream.promises) + 50
            wait_until(lambda: len(stream.promises) >= more, "it goes on")
            places = stream.end()
            found = read_all(self.driver, server.bootstrap, topic)
            assert "Traceback" not in server.log
        values = {(each.partition, each.offset): each.value for each in found}
        for number, place in enumerate(places):
            # A duplicate whose offset the server no longer knows has none in the response.
            if place.offset >= 0:
                assert values[place] == b"%d" % number
        kept = [int(each.value or b"") for each in found]
        assert set(kept) == set(range(len(places)))
        if is_idempotent:
            assert kept == list(range(len(places))), "something is there twice or out of order"

    @pytest.mark.feature(SYNC)
    @pytest.mark.long
    def test_with_sync_flush_all_is_on_disk_before_the_answer(self, tmp_path: Path) -> None:
        topic = new_topic("sync")
        messages = [Message(value=b"%d" % n, partition=0) for n in range(200)]
        with RunningServer(tmp_path, settings=["store.flush=sync"]) as server:
            places = send_all(
                self.driver, server.bootstrap, topic, messages, Sending(is_idempotent=True)
            )
            server.kill()
            server.restart()
            found = read_all(self.driver, server.bootstrap, topic)
        assert [place.offset for place in places] == list(range(200))
        assert [each.value for each in found] == [message.value for message in messages]
