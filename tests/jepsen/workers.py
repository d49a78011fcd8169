"""Workers: each has a transactional producer and a consumer, and records all results.

The client is librdkafka by confluent-kafka. Its results are recorded unchanged: committed, aborted,
or unknown. After a fatal error a worker starts again with new clients, under the same transactional
id. Offsets are not part of its transactions: librdkafka 2.x waits forever in
send_offsets_to_transaction if the server dies at that moment, with any server (also seen with
Apache Kafka 4.3.1); `test_transforming` covers them, with another client.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.jepsen.history import Outcome, Poll, Read, Send, Transaction

TOPIC = "jepsen"
PARTITIONS = 4
CALL_SECONDS = 20.0
GROUP = "jepsen"


class Values:
    """Numbers that are used once."""

    def __init__(self) -> None:
        self._next = 0
        self._lock = threading.Lock()

    def take(self) -> int:
        with self._lock:
            self._next += 1
            return self._next


def consumer(bootstrap: str) -> Any:
    """A consumer of committed values, of all partitions, from their start."""
    made = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "reconnect.backoff.max.ms": 300,
        }
    )
    made.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    return made


class Worker(threading.Thread):
    """Runs transactions until it is stopped."""

    def __init__(self, number: int, bootstrap: str, values: Values, random: Random) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._address = bootstrap
        self._values = values
        self._random = random
        self._is_over = threading.Event()
        self._session = -1
        self.history: list[Transaction] = []
        self.failure: BaseException | None = None

    def end(self) -> None:
        """Stop after the current transaction."""
        self._is_over.set()

    def run(self) -> None:
        """Work; an error outside the client is stored for the test."""
        try:
            while not self._is_over.is_set():
                self._work_until_fatal()
        except BaseException as error:  # noqa: BLE001  # the test raises it again
            self.failure = error

    def _work_until_fatal(self) -> None:
        self._session += 1
        reading = consumer(self._address)
        producer = Producer(
            {
                "bootstrap.servers": self._address,
                "transactional.id": f"jepsen-{self._number}",
                "transaction.timeout.ms": 10_000,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 300,
            }
        )
        try:
            producer.init_transactions(CALL_SECONDS)
            while not self._is_over.is_set() and self._transact(producer, reading):
                pass
        except KafkaException:
            # It could not even begin; the next one will.
            return
        finally:
            reading.close()
            del producer

    def _transact(self, producer: Any, reading: Any) -> bool:
        """Run one transaction; false if these clients cannot continue."""
        transaction = Transaction(self._number, self._session)
        self.history.append(transaction)
        is_ended = False
        try:
            producer.begin_transaction()
            for _ in range(self._random.randrange(1, 5)):
                if self._random.random() < 0.4:
                    self._poll(reading, transaction)
                else:
                    self._send(producer, transaction)
            if self._random.random() < 0.25:
                transaction.ending = float("inf")
                producer.abort_transaction(CALL_SECONDS)
                transaction.outcome = Outcome.FAIL
                return True
            transaction.ending = time.monotonic()
            is_ended = True
            producer.commit_transaction(CALL_SECONDS)
            transaction.outcome = Outcome.OK
            return True
        except KafkaException as error:
            return self._recover(producer, transaction, error, is_ended)

    def _recover(
        self, producer: Any, transaction: Transaction, error: KafkaException, is_ended: bool
    ) -> bool:
        reason = error.args[0]
        if not is_ended:
            # Its commit was never requested: the next instance aborts it.
            transaction.outcome = Outcome.FAIL
        if not reason.txn_requires_abort():
            return False
        try:
            producer.abort_transaction(CALL_SECONDS)
        except KafkaException:
            return False
        transaction.outcome = Outcome.FAIL
        return True

    def _poll(self, reading: Any, transaction: Transaction) -> None:
        found = reading.consume(20, 0.05)
        transaction.polls.append(Poll(list(_reads(found)), time.monotonic()))

    def _send(self, producer: Any, transaction: Transaction) -> None:
        send = Send(self._random.randrange(PARTITIONS), self._values.take())
        transaction.sends.append(send)

        def told(error: Any, message: Any) -> None:
            if error is None and message.offset() >= 0:
                send.offset = message.offset()

        producer.produce(TOPIC, b"%d" % send.value, partition=send.partition, on_delivery=told)
        producer.poll(0)


def _reads(messages: list[Any]) -> Iterator[Read]:
    for message in messages:
        if message.error() is None:
            yield Read(message.partition(), message.offset(), int(message.value()))


def read_all(bootstrap: str) -> list[Read]:
    """Everything that is committed, once no transaction is open."""
    reading = consumer(bootstrap)
    try:
        ends = {
            partition: reading.get_watermark_offsets(
                TopicPartition(TOPIC, partition), timeout=CALL_SECONDS
            )[1]
            for partition in range(PARTITIONS)
        }
        found: list[Read] = []
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found += _reads(reading.consume(500, 0.2))
            at = {each.partition: each.offset for each in reading.position(reading.assignment())}
            if all(at[partition] >= end or end == 0 for partition, end in ends.items()):
                return found
        raise AssertionError(f"read up to {at}, the ends are {ends}")
    finally:
        reading.close()


def abort_leftovers(bootstrap: str, count: int) -> None:
    """Start once with each transactional id, which aborts its open transaction."""
    for number in range(count):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"jepsen-{number}"}
        )
        producer.init_transactions(60)
