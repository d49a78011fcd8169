"""What people get wrong about RocketMQ, and what holds: over the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.gateway.fakes import turns
from tests.gateway.remoting.client import Client, messages
from tests.gateway.remoting.fakes import Line
from tests.gateway.remoting.retryworld import RetryWorld
from tests.gateway.server import RunningServer
from tests.world import SECOND

from rockgate.gateway.net.limits import Limits
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import BINARY, JSON


def trimmed(server: RunningServer, broker: Client, topic: str) -> None:
    """A topic of five messages whose first three are gone."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    for number in range(5):
        broker.publish(topic, b"%d" % number)
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        future.result(60)


@pytest.mark.row("TRAP-2")
def test_members_are_asked_of_the_broker_and_the_name_server_knows_none(
    broker: Client, namesrv: Client
) -> None:
    broker.publish("members-of")
    broker.heartbeat("c1", "asked-here", "members-of")
    answer = broker.ask(38, {"consumerGroup": "asked-here"})
    assert json.loads(bytes(answer.body)) == {"consumerIdList": ["c1"]}
    elsewhere = namesrv.ask(38, {"consumerGroup": "asked-here"})
    assert elsewhere.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


@pytest.mark.row("TRAP-8")
def test_what_is_sent_back_comes_again_and_is_not_done() -> None:
    world = RetryWorld()
    world.give_back(world.published(b"fails"))
    assert world.consumed("%RETRY%g") == []
    world.pass_time(10 * SECOND)
    assert [message.body for message in world.consumed("%RETRY%g")] == [b"fails"]


@pytest.mark.row("TRAP-9")
def test_the_broker_sends_no_message_that_no_one_pulls(
    broker: Client, connect: Callable[..., Client]
) -> None:
    broker.publish("unasked")
    member = connect()
    member.heartbeat("c1", "waits-for-it", "unasked")
    for _ in range(3):
        broker.publish("unasked", b"news")
    assert member.ask(30, {"topic": "unasked", "queueId": 0}).fields == {"offset": "4"}
    # Whatever the server would send by itself arrives before that response.
    assert {told.code for told in member.told} <= {40}, "but that the group has changed"
    assert len(messages(member.pull("unasked", 1))) == 3


@pytest.mark.row("TRAP-11")
def test_the_queues_of_a_topic_are_all_of_them_whoever_has_some(
    broker: Client, namesrv: Client, connect: Callable[..., Client]
) -> None:
    broker.publish("listed-queues")
    for number in range(2):
        connect().heartbeat(f"c{number}", "sharers", "listed-queues")
    locked = [{"brokerName": "rockgate", "queueId": n, "topic": "listed-queues"} for n in (0, 1)]
    body = {"clientId": "c0", "consumerGroup": "sharers", "mqSet": locked}
    assert broker.ask(41, {}, json.dumps(body).encode()).code == 0
    [data] = json.loads(bytes(namesrv.ask(105, {"topic": "listed-queues"}).body))["queueDatas"]
    assert (data["readQueueNums"], data["writeQueueNums"]) == (4, 4)


@pytest.mark.row("TRAP-12")
def test_dead_letters_are_a_topic_like_any_other() -> None:
    world = RetryWorld()
    world.give_back(world.published(b"poison"), level=-1)
    dead, plain = (world.store.topics.get(name) for name in ("%DLQ%g", "orders"))
    assert [message.body for message in world.consumed("%DLQ%g")] == [b"poison"]
    assert (dead.permission, dead.is_internal, dead.queue_count) == (6, False, 1)
    assert dead.config == plain.config == {}, "kept as long as any"


@pytest.mark.row("TRAP-1")
@pytest.mark.row("TRAP-14")
def test_a_wrong_offset_is_answered_with_the_lowest_kept_or_the_end(
    broker: Client, server: RunningServer
) -> None:
    trimmed(server, broker, "corrected")
    for wrong, right in ((0, "3"), (2, "3"), (-7, "3"), (6, "5"), (2**40, "5")):
        answer = broker.pull("corrected", wrong)
        assert answer.code == ResponseCode.PULL_OFFSET_MOVED
        assert answer.fields["nextBeginOffset"] == right
        again = broker.pull("corrected", int(right))
        assert again.code != ResponseCode.PULL_OFFSET_MOVED, "it is not asked for ever"
    assert broker.ask(31, {"topic": "corrected", "queueId": 0}).fields == {"offset": "3"}


@pytest.mark.row("CFW-6")
@pytest.mark.row("TRAP-14")
def test_a_new_group_begins_at_0_where_the_queue_does_and_is_not_found_elsewhere(
    broker: Client, server: RunningServer
) -> None:
    def known(topic: str, **more: Any) -> tuple[int, str | None]:
        asked = {"topic": topic, "queueId": 0, "consumerGroup": "brand-new", **more}
        answer = broker.ask(14, asked)
        return answer.code, answer.fields.get("offset")

    broker.publish("young")
    assert known("young") == (0, "0")
    assert known("young", queueId=1) == (ResponseCode.QUERY_NOT_FOUND, None), "nothing is in it"
    assert known("young", setZeroIfNotFound="false") == (ResponseCode.QUERY_NOT_FOUND, None)
    trimmed(server, broker, "aged")
    assert known("aged") == (ResponseCode.QUERY_NOT_FOUND, None)


@pytest.mark.row("I-01")
def test_a_message_is_read_and_found_by_key_and_id_as_soon_as_it_is_acknowledged(
    broker: Client,
) -> None:
    for number in range(20):
        given = {"KEYS": f"key-{number}", "UNIQ_KEY": f"unique-{number}"}
        body = b"%d" % number
        sent = broker.publish("at-once", body, properties=given)
        offset = int(sent.fields["queueOffset"])
        assert [m.body for m in messages(broker.pull("at-once", offset))] == [body]
        asked = {"topic": "at-once", "maxNum": 32, "beginTimestamp": 0, "endTimestamp": 2**62}
        for key in given.values():
            assert [m.body for m in messages(broker.ask(12, {**asked, "key": key}))] == [body]


@pytest.mark.row("MODEL-7")
def test_when_a_held_pull_wakes_the_message_is_in_its_queue_and_in_the_key_index(
    broker: Client, connect: Callable[..., Client]
) -> None:
    broker.publish("reaching")
    waiting = connect()
    opaque = waiting.hold("reaching", 1)
    assert waiting.ask(30, {"topic": "reaching", "queueId": 0}).fields == {"offset": "1"}
    broker.publish("reaching", b"news", properties={"KEYS": "news-key"})
    assert [m.body for m in messages(waiting.answer(opaque))] == [b"news"]
    asked = {"topic": "reaching", "key": "news-key", "maxNum": 32, "beginTimestamp": 0}
    found = waiting.ask(12, {**asked, "endTimestamp": 2**62})
    assert [m.body for m in messages(found)] == [b"news"]


@pytest.mark.row("U-15")
def test_a_pull_has_what_its_client_asks_for_and_always_the_master(broker: Client) -> None:
    for _ in range(40):
        broker.publish("more-than-32", bytes(10_000))
    answer = broker.pull("more-than-32", maxMsgNums=40)
    assert answer.code == ResponseCode.SUCCESS
    assert len(messages(answer)) == 40 and len(answer.body) > 256 << 10
    assert answer.fields["suggestWhichBrokerId"] == "0"
    codes = [broker.pull("more-than-32", offset, subscription="Z").code for offset in (0, 40, 41)]
    assert codes == [20, 19, 21]


# The frame


@pytest.mark.row("U-19")
@pytest.mark.parametrize("encoding", [JSON, BINARY])
def test_both_encodings_are_understood_in_a_frame_of_length_header_length_and_header(
    connect: Callable[..., Client], encoding: int
) -> None:
    client = connect(encoding=encoding)
    client.connection.request(28, {"a": "b"}, b"body")
    frame = b"".join(map(bytes, client.connection.data_to_send()))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4] == encoding
    header_size = int.from_bytes(frame[5:8], "big")
    assert frame[8 + header_size :] == b"body"
    client.socket.sendall(frame)
    assert client.answer(0).code == 0


@pytest.mark.row("U-19")
async def test_a_frame_of_more_than_16_mib_ends_its_connection() -> None:
    limits = Limits.of(RemotingConfig())
    assert limits.frame_bytes_max == 16 << 20
    line = Line(limits=limits).open()
    line.receive(((16 << 20) + 1).to_bytes(4, "big") + bytes(4))
    assert line.transport.is_lost


@pytest.mark.row("U-19")
async def test_a_connection_that_is_idle_for_two_minutes_is_closed() -> None:
    assert Limits.of(RemotingConfig()).idle_seconds_max == 120
    line = Line(limits=Limits.of(RemotingConfig())).open()
    line.clock.advance(119)
    await turns()
    assert not line.transport.is_lost
    line.clock.advance(2)
    assert line.transport.is_lost
