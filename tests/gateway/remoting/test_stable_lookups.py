"""What a Kafka transaction has written is not for RocketMQ's clients until it is committed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.gateway.transcode.address import pack_address, unpack_address

SPAN = 1_500
"""Bytes behind the first batch in which the next ones lie."""
DELAY = [("TIMER_DELAY_MS", b"600000")]


class Side:
    """A topic of both sides, with one committed batch in front."""

    def __init__(self, server: RunningServer, client: Client, name: str) -> None:
        self.name, self.client = name, client
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        config = {"message.index": "true", "message.type": "MIXED"}
        made = admin.create_topics([NewTopic(name, 1, config=config)])
        made[name].result(60)
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": server.bootstrap, "transactional.id": name}
        )
        self.producer.init_transactions(60)
        self.producer.begin_transaction()
        self.write(b"front")
        self.producer.commit_transaction(60)
        [first] = messages(client.pull(name))
        place = unpack_address(first.position)
        assert place is not None
        self.start = place.position + 1

    def write(self, value: bytes, **more: object) -> None:
        self.producer.produce(self.name, value, key=b"key", partition=0, **more)
        self.producer.flush(60)

    def addresses(self) -> Iterator[int]:
        for position in range(self.start, self.start + SPAN):
            yield pack_address(position, 0)

    def viewed(self) -> list[bytes]:
        """What 33 gives for any address."""
        answers = [self.client.ask(33, {"offset": address}) for address in self.addresses()]
        found = [m for answer in answers if answer.code == 0 for m in messages(answer)]
        # The server's own topics have entries there too.
        return [m.body for m in found if m.topic == self.name]

    def given_back(self, group: str) -> int:
        """How many addresses of the topic's records 36 takes back."""
        asked = {"group": group, "delayLevel": 1, "maxReconsumeTimes": 3}
        taken = [
            address
            for address in self.addresses()
            if self.client.ask(36, {**asked, "offset": address}).code == 0
        ]
        # The server's own topics have entries there too.
        return sum(not self._is_elsewhere(address) for address in taken)

    def _is_elsewhere(self, address: int) -> bool:
        """Whether 33 shows a record of another topic."""
        answer = self.client.ask(33, {"offset": address})
        return answer.code == 0 and messages(answer)[0].topic != self.name

    def by_key(self) -> list[bytes]:
        asked = {"topic": self.name, "key": "key", "maxNum": 32}
        answer = self.client.ask(12, {**asked, "beginTimestamp": 0, "endTimestamp": 2**62})
        return [m.body for m in messages(answer)] if answer.code == 0 else []


@pytest.fixture
def side(
    server: RunningServer, connect: Callable[..., Client], request: pytest.FixtureRequest
) -> Side:
    return Side(server, connect(), f"undecided-{abs(hash(request.node.name))}")


def test_an_undecided_record_is_found_by_no_one_until_its_commit(side: Side) -> None:
    side.producer.begin_transaction()
    side.write(b"undecided")
    assert side.by_key() == [b"front"]
    assert side.viewed() == []
    assert side.given_back("undecided") == 0
    side.producer.commit_transaction(60)
    wait_until(lambda: len(side.by_key()) == 2, "the key is found")
    assert side.by_key() == [b"undecided", b"front"]
    assert side.viewed() == [b"undecided"]
    assert side.given_back("decided") == 1


def test_an_aborted_record_is_found_by_no_one(side: Side) -> None:
    side.producer.begin_transaction()
    side.write(b"aborted")
    side.producer.abort_transaction(60)
    assert side.by_key() == [b"front"]
    assert (side.viewed(), side.given_back("aborted")) == ([], 0)


def test_a_message_behind_an_undecided_record_is_not_shown_before_it(side: Side) -> None:
    side.producer.begin_transaction()
    side.write(b"undecided")
    side.client.publish(side.name, b"behind", properties={"KEYS": "key", "UNIQ_KEY": "behind"})
    assert (side.by_key(), side.viewed()) == ([b"front"], [])
    side.producer.commit_transaction(60)
    wait_until(lambda: len(side.by_key()) == 3, "the keys are found")


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_delayed_record_of_a_transaction_is_told_to_operators_when_it_waits(
    side: Side, is_committed: bool
) -> None:
    place = f"{side.name}/0/2"
    side.producer.begin_transaction()
    side.write(b"half decided", headers=DELAY)

    def described() -> bool:
        answer = side.client.ask(31_002, {"preview": 100}, json.dumps([place]).encode())
        return bool(json.loads(bytes(answer.body))["found"])

    assert not described()
    assert (side.viewed(), side.by_key()) == ([], [b"front"])
    if is_committed:
        side.producer.commit_transaction(60)
        wait_until(described, "it waits")
    else:
        side.producer.abort_transaction(60)
        assert not described()
    assert (side.viewed(), side.by_key()) == ([], [b"front"])
