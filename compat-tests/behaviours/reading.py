"""What every client may expect of reading."""

from __future__ import annotations

import threading
import time
from typing import ClassVar

import pytest
from behaviours.driver import Driver, Message, Sending
from behaviours.features import OFFSETS, WAITING
from behaviours.steps import new_topic, read_until, reading, send_all
from tests.gateway.server import RunningServer

FIRST_MS = 1_600_000_000_000


class Reading:
    """Mixed into each client's test class."""

    driver: ClassVar[Driver]

    def _filled(self, server: RunningServer, what: str, count: int = 100) -> str:
        """A topic with `count` records in partition 0, a second apart."""
        topic = new_topic(what)
        messages = [
            Message(value=b"%d" % n, partition=0, timestamp_ms=FIRST_MS + 1000 * n)
            for n in range(count)
        ]
        send_all(self.driver, server.bootstrap, topic, messages, Sending())
        return topic

    @pytest.mark.feature(OFFSETS)
    def test_a_new_topic_has_four_partitions_and_they_are_empty(
        self, server: RunningServer
    ) -> None:
        topic = self._filled(server, "fresh", 1)
        with reading(self.driver, server.bootstrap) as consumer:
            assert consumer.partitions(topic) == [0, 1, 2, 3]
            ends = [(consumer.beginning(topic, n), consumer.end(topic, n)) for n in range(4)]
            assert ends == [(0, 1), (0, 0), (0, 0), (0, 0)]

    @pytest.mark.feature(OFFSETS)
    def test_the_beginning_and_the_end_are_the_first_and_the_next_offset(
        self, server: RunningServer
    ) -> None:
        topic = self._filled(server, "ends")
        with reading(self.driver, server.bootstrap) as consumer:
            assert (consumer.beginning(topic, 0), consumer.end(topic, 0)) == (0, 100)

    @pytest.mark.feature(OFFSETS)
    def test_seeking_to_the_middle_of_a_batch_continues_right_there(
        self, server: RunningServer
    ) -> None:
        topic = self._filled(server, "seek")
        with reading(self.driver, server.bootstrap) as consumer:
            consumer.assign(topic, [0])
            read_until(consumer, lambda got: len(got) >= 100, "all is read once")
            for offset in (57, 0, 99):
                consumer.seek(topic, 0, offset)
                found = read_until(
                    consumer,
                    lambda got, left=100 - offset: len(got) >= left,
                    f"all from {offset} on is read",
                )
                assert [each.offset for each in found] == list(range(offset, 100))
                assert found[0].value == b"%d" % offset

    @pytest.mark.feature(WAITING)
    def test_records_larger_than_every_limit_are_read_anyway(self, server: RunningServer) -> None:
        topic = new_topic("large")
        messages = [
            Message(value=bytes([number]) * 50_000, partition=number % 4) for number in range(12)
        ]
        send_all(self.driver, server.bootstrap, topic, messages, Sending(linger_ms=0))
        with reading(self.driver, server.bootstrap, bytes_max=1_000) as consumer:
            consumer.assign(topic, [0, 1, 2, 3])
            found = read_until(consumer, lambda got: len(got) >= 12, "all of them are read")
        assert sorted(each.value or b"" for each in found) == [each.value for each in messages]

    @pytest.mark.feature(OFFSETS)
    def test_an_offset_is_found_by_its_time(self, server: RunningServer) -> None:
        topic = self._filled(server, "by-time")
        with reading(self.driver, server.bootstrap) as consumer:
            at = {
                when: consumer.offset_at(topic, 0, FIRST_MS + when)
                for when in (-1, 0, 1, 41_000, 41_001, 99_000, 99_001)
            }
        assert at == {-1: 0, 0: 0, 1: 1, 41_000: 41, 41_001: 42, 99_000: 99, 99_001: None}

    @pytest.mark.feature(WAITING)
    def test_a_waiting_poll_ends_as_soon_as_something_comes(self, server: RunningServer) -> None:
        topic = self._filled(server, "wake", 1)
        with reading(self.driver, server.bootstrap, wait_ms_max=20_000) as consumer:
            consumer.assign(topic, [0, 1, 2, 3])
            read_until(consumer, lambda got: len(got) >= 1, "the first is read")
            message = Message(value=b"wake up", partition=2)
            sender = threading.Timer(
                0.3,
                send_all,
                (self.driver, server.bootstrap, topic, [message], Sending(linger_ms=0)),
            )
            started = time.monotonic()
            sender.start()
            (found,) = read_until(consumer, lambda got: len(got) >= 1, "the second is read")
            # Before the close, which in some clients waits for the last poll.
            waited = time.monotonic() - started
            sender.join()
        assert found.value == b"wake up"
        assert waited < 15, "it waited for its deadline and not for the record"
