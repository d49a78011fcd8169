"""Apache Kafka's Java client, unmodified, against the server: the behaviours."""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviours.administering import Administering
from behaviours.bringing import java_program
from behaviours.consumer_protocol import ConsumerProtocol
from behaviours.delaying import Delaying
from behaviours.driver import Message, Refused, Sending
from behaviours.features import TRANSACTIONS
from behaviours.grouping import Grouping
from behaviours.program import ProgramDriver
from behaviours.reading import Reading
from behaviours.securing import Securing
from behaviours.share_groups import ShareGroups
from behaviours.steps import new_topic, read_until, reading
from behaviours.surviving import Surviving
from behaviours.transacting import Transacting
from behaviours.writing import Writing
from bench.peers.jars import pinned_version
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
DRIVERS = {
    "v3": ProgramDriver(lambda: java_program(HERE, "v3", "Program")),
    "v4": ProgramDriver(lambda: java_program(HERE, "v4", "Program", "calls")),
}

pytestmark = pytest.mark.java


INVALID_PRODUCER_EPOCH = 47


class TestKafkaClients4(
    Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving, Securing
):
    driver = DRIVERS["v4"]
    client = f"kafka-clients {pinned_version(HERE / 'v4' / 'pom.xml')}"

    @pytest.mark.feature(TRANSACTIONS)
    def test_a_producer_whose_transaction_timed_out_aborts_and_continues(
        self, server: RunningServer
    ) -> None:
        topic = new_topic("timed-out")
        sending = Sending(
            is_idempotent=True, transactional_id=f"id-of-{topic}", transaction_timeout_ms=500
        )
        producer = self.driver.producer(server.bootstrap, sending)
        producer.begin()
        producer.send(topic, Message(value=b"late", partition=0)).result()
        with reading(self.driver, server.bootstrap) as consumer:
            wait_until(lambda: consumer.end(topic, 0) == 2, "the server has written its marker")
        with pytest.raises(Refused) as refused:
            producer.send(topic, Message(value=b"too late", partition=0)).result()
        assert refused.value.code == INVALID_PRODUCER_EPOCH
        producer.abort()
        producer.begin()
        promise = producer.send(topic, Message(value=b"in time", partition=0))
        producer.commit()
        assert promise.result().offset == 2
        producer.close()
        with reading(self.driver, server.bootstrap) as consumer:
            consumer.assign(topic, [0])
            found = read_until(consumer, lambda got: len(got) >= 2, f"{topic} is read")
        assert [each.value for each in found] == [b"late", b"in time"]


class TestConsumerProtocol(ConsumerProtocol):
    driver = ProgramDriver(lambda: java_program(HERE, "v4", "Program", "calls"))
    client = TestKafkaClients4.client


@pytest.mark.long
class TestShareGroups(ShareGroups):
    renewed_come_again = True
    driver = ProgramDriver(lambda: java_program(HERE, "v4", "Program", "calls"))
    client = TestKafkaClients4.client


@pytest.mark.long
class TestKafkaClients3(
    Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving, Securing
):
    driver = DRIVERS["v3"]
    client = f"kafka-clients {pinned_version(HERE / 'v3' / 'pom.xml')}"
