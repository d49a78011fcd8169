"""What every client may expect of delayed records, of which none of them knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

import pytest
from behaviours.driver import Consumer, Driver, Message, Received, Refused, Sending
from behaviours.features import DELAYS
from behaviours.grouping import joined, read_together
from behaviours.steps import new_topic, read_until, reading, send_all
from tests.gateway.server import RunningServer

SOON = (("TIMER_DELAY_MS", b"700"),)
NEVER = (("TIMER_DELAY_SEC", b"86400"),)
INVALID_RECORD = 87
UNKNOWN = -1


def values(found: list[Received]) -> list[bytes | None]:
    return [each.value for each in found]


class Delaying:
    """Mixed into each client's test class."""

    driver: ClassVar[Driver]

    def _topic(self, server: RunningServer, what: str) -> str:
        topic = new_topic(what)
        admin = self.driver.admin(server.bootstrap)
        try:
            admin.create(topic, 1, {"message.type": "MIXED"})
        finally:
            admin.close()
        return topic

    @contextlib.contextmanager
    def _reading(self, server: RunningServer, topic: str, offset: int = 0) -> Iterator[Consumer]:
        with reading(self.driver, server.bootstrap) as consumer:
            consumer.assign(topic, [0], offset)
            yield consumer

    @pytest.mark.feature(DELAYS)
    @pytest.mark.parametrize("codec", ["none", "gzip"])
    def test_delayed_records_of_a_batch_come_when_they_are_due_and_the_others_at_once(
        self, server: RunningServer, codec: str
    ) -> None:
        topic = self._topic(server, "mixed-bag")
        other = (("other", b"x"),)
        messages = [
            Message(
                value=b"%d" % number,
                key=b"k",
                partition=0,
                timestamp_ms=1_600_000_000_000 + number,
                headers=other + SOON if number % 2 else other,
            )
            for number in range(6)
        ]
        sending = Sending(codec=codec, is_idempotent=True, linger_ms=50)
        places = send_all(self.driver, server.bootstrap, topic, messages, sending)
        assert [each.offset for each in places] == list(range(6))
        with self._reading(server, topic) as consumer:
            found = read_until(consumer, lambda got: len(got) >= 6, "all six are read")
        assert values(found) == [b"0", b"2", b"4", b"1", b"3", b"5"]
        assert [each.offset for each in found] == [0, 2, 4, 6, 7, 8]
        for each in found:
            assert (each.key, each.headers) == (b"k", other)
            assert each.timestamp_ms == 1_600_000_000_000 + int(each.value or b"")

    @pytest.mark.feature(DELAYS)
    def test_batches_in_which_all_records_wait_are_stepped_over(
        self, server: RunningServer
    ) -> None:
        topic = self._topic(server, "stepped-over")
        producer = self.driver.producer(server.bootstrap, Sending(linger_ms=0))

        def send(*messages: Message) -> None:
            promises = [producer.send(topic, each) for each in messages]
            producer.flush()
            for each in promises:
                each.result()

        waiting = [Message(value=b"later", partition=0, headers=NEVER)] * 3
        send(*waiting)
        for _ in range(3):
            send(waiting[0])
        send(Message(value=b"between", partition=0))
        send(*waiting)
        with self._reading(server, topic) as consumer:
            assert values(read_until(consumer, bool, "the one between is read")) == [b"between"]
            # It is after an empty batch now, and nothing follows.
            assert consumer.poll(0.3) == []
            send(Message(value=b"last", partition=0))
            assert values(read_until(consumer, bool, "the last one is read")) == [b"last"]
            consumer.seek(topic, 0, 1)
            found = read_until(consumer, lambda got: len(got) >= 2, "both are read from inside")
            assert values(found) == [b"between", b"last"]
            assert consumer.end(topic, 0) == 11
        with joined(self.driver, server.bootstrap, f"group-of-{topic}", topic) as member:
            (together,) = read_together([member], 2)
            assert values(together) == [b"between", b"last"]
        producer.close()

    @pytest.mark.feature(DELAYS)
    def test_records_of_a_transaction_wait_from_its_commit_on_and_never_after_an_abort(
        self, server: RunningServer
    ) -> None:
        topic = self._topic(server, "decided")
        sending = Sending(is_idempotent=True, transactional_id=f"id-of-{topic}")
        producer = self.driver.producer(server.bootstrap, sending)
        for what in (b"aborted", b"committed"):
            producer.begin()
            producer.send(topic, Message(value=what + b" later", partition=0, headers=SOON))
            producer.send(topic, Message(value=what, partition=0))
            producer.flush()
            if what == b"committed":
                producer.commit()
            else:
                producer.abort()
        producer.close()
        with joined(self.driver, server.bootstrap, f"group-of-{topic}", topic) as member:
            (found,) = read_together([member], 2)
        assert values(found) == [b"committed", b"committed later"]

    @pytest.mark.feature(DELAYS)
    def test_a_delay_that_is_no_number_is_refused(self, server: RunningServer) -> None:
        topic = self._topic(server, "no-number")
        message = Message(partition=0, headers=(("DELAY", b"soon"),))
        with pytest.raises(Refused) as refused:
            send_all(self.driver, server.bootstrap, topic, [message], Sending())
        unknown = "invalid_record" in self.driver.cannot
        assert refused.value.code == (UNKNOWN if unknown else INVALID_RECORD)
        with reading(self.driver, server.bootstrap) as consumer:
            assert consumer.end(topic, 0) == 0
