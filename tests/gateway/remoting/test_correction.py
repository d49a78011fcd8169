"""How far the slowest groups of a topic are (308), and a master without slaves (907)."""

import json

from tests.gateway.remoting.client import Client

from rockgate.protocol.remoting import javajson

LARGEST = 2**63 - 1


def commit(broker: Client, topic: str, group: str, *offsets: int) -> None:
    for queue, offset in enumerate(offsets):
        asked = {"topic": topic, "consumerGroup": group, "queueId": queue, "commitOffset": offset}
        assert broker.ask(15, asked).code == 0


def correction(broker: Client, topic: str, compared: str, left_out: str = "") -> dict[int, int]:
    asked = {"topic": topic, "compareGroup": compared, "filterGroups": left_out}
    answer = broker.ask(308, asked)
    assert answer.code == 0
    found = json.loads(javajson.legalise(bytes(answer.body)))["correctionOffsets"]
    return {int(queue): offset for queue, offset in found.items()}


def test_it_is_the_lowest_offset_of_each_queue(broker: Client) -> None:
    broker.publish("corrected")
    commit(broker, "corrected", "fast", 9, 8)
    commit(broker, "corrected", "slow", 3, 8)
    commit(broker, "corrected", "compared", 5, 8)
    assert correction(broker, "corrected", "compared") == {0: 3, 1: 8}


def test_groups_can_be_left_out_and_keep_their_offsets(broker: Client) -> None:
    broker.publish("left-out")
    commit(broker, "left-out", "fast", 9)
    commit(broker, "left-out", "slow", 3)
    assert correction(broker, "left-out", "fast", "slow,nobody") == {0: 9}
    asked = {"topic": "left-out", "consumerGroup": "slow", "queueId": 0}
    assert broker.ask(14, asked).fields == {"offset": "3"}


def test_where_the_compared_group_is_behind_all_there_is_nothing_to_correct(
    broker: Client,
) -> None:
    broker.publish("behind")
    commit(broker, "behind", "fast", 9)
    commit(broker, "behind", "compared", 5)
    assert correction(broker, "behind", "compared", "compared") == {0: LARGEST}


def test_a_topic_that_no_one_reads_has_none(broker: Client) -> None:
    broker.publish("unread")
    assert correction(broker, "unread", "anybody") == {}
    assert correction(broker, "nowhere", "anybody") == {}


def test_there_are_no_slaves(broker: Client) -> None:
    status = json.loads(bytes(broker.ask(907).body))
    end = int(json.loads(bytes(broker.ask(28).body))["table"]["commitLogMaxOffset"])
    assert status == {
        "master": True,
        "masterCommitLogMaxOffset": end,
        "inSyncSlaveNums": 0,
        "haConnectionInfo": [],
    }
