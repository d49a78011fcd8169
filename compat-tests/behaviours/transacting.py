"""What every client may expect of transactions."""

from __future__ import annotations

from typing import ClassVar

import pytest
from behaviours.driver import Driver, Message, Sending
from behaviours.features import TRANSACTIONS
from behaviours.grouping import in_a_process, joined, read_together
from behaviours.steps import new_topic, reading
from tests.gateway.server import RunningServer


class Transacting:
    """Mixed into each client's test class."""

    driver: ClassVar[Driver]

    @pytest.mark.feature(TRANSACTIONS)
    def test_what_is_committed_is_read_and_what_is_aborted_is_not(
        self, server: RunningServer
    ) -> None:
        topic = new_topic("transacted")
        sending = Sending(is_idempotent=True, transactional_id=f"id-of-{topic}")
        producer = self.driver.producer(server.bootstrap, sending)
        expected = set()
        for number in range(6):
            producer.begin()
            values = [b"%d-%d" % (number, n) for n in range(5)]
            promises = [
                producer.send(topic, Message(value=value, partition=n % 2))
                for n, value in enumerate(values)
            ]
            producer.flush()
            assert all(promise.result().offset >= 0 for promise in promises)
            if number % 2:
                producer.abort()
            else:
                producer.commit()
                expected.update(values)
        producer.close()
        with joined(self.driver, server.bootstrap, f"group-of-{topic}", topic) as member:
            (found,) = read_together([member], len(expected))
            assert len(found) == len(expected)
            assert {each.value for each in found} == expected
        with reading(self.driver, server.bootstrap) as consumer:
            # Three, or two, from each of six transactions, and a marker at the end of each.
            assert [consumer.end(topic, n) for n in range(2)] == [24, 18]

    @pytest.mark.feature(TRANSACTIONS)
    def test_a_second_producer_of_the_same_name_ends_what_the_first_left_open(
        self, server: RunningServer
    ) -> None:
        topic = new_topic("fenced")
        sending = Sending(is_idempotent=True, transactional_id=f"id-of-{topic}")
        with in_a_process(self.driver) as other:
            first = other.producer(server.bootstrap, sending)
            first.begin()
            first.send(topic, Message(value=b"left open", partition=0))
            first.flush()
        second = self.driver.producer(server.bootstrap, sending)
        second.begin()
        second.send(topic, Message(value=b"committed", partition=0))
        second.commit()
        second.close()
        with joined(self.driver, server.bootstrap, f"group-of-{topic}", topic) as member:
            (found,) = read_together([member], 1)
        assert [each.value for each in found] == [b"committed"]
