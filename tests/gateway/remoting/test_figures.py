"""Figures that mqadmin shows of queues and members: they are those of the messages and clients."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from tests.gateway.remoting.client import Client, messages
from tests.waiting import wait_until

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import ConsumerStatus, MessageQueue
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command

GROUP = "told-of"


@pytest.mark.row("ADM-5")
def test_the_times_of_a_queue_are_those_of_its_first_last_and_next_messages(
    broker: Client,
) -> None:
    for number in range(4):
        assert broker.publish("spanned", b"%d" % number).code == 0
        stored_by = time.time_ns() // 1_000_000
        wait_until(lambda at=stored_by: time.time_ns() // 1_000_000 > at, "it is later")  # type: ignore[misc]
    stored = [message.store_ms for message in messages(broker.pull("spanned"))]

    def span(offset: int) -> tuple[int, int, int, int]:
        asked = {"topic": "spanned", "queueId": 0, "consumerGroup": GROUP, "commitOffset": offset}
        assert broker.ask(15, asked).code == 0
        answer = broker.ask(303, {"topic": "spanned", "group": GROUP})
        spans = json.loads(bytes(answer.body))["consumeTimeSpanSet"]
        [found] = [each for each in spans if each["messageQueue"]["queueId"] == 0]
        names = ("minTimeStamp", "consumeTimeStamp", "maxTimeStamp", "delayTime")
        first, read, last, behind = (found[name] for name in names)
        return first, read, last, behind

    first, read, last, behind = span(3)
    assert (first, read, last) == (stored[0], stored[2], stored[3])
    assert 0 <= behind < 3_600_000
    assert span(1)[:3] == (stored[0], stored[0], stored[3])
    assert span(4)[1:] == (stored[3], stored[3], 0), "nothing waits"


@pytest.mark.row("ADM-6")
def test_what_members_tell_of_their_offsets_is_passed_on(
    connect: Callable[..., Client], broker: Client
) -> None:
    queue = MessageQueue(topic="told", broker_name="rockgate", queue_id=2)
    members = {name: connect() for name in ("member-a", "member-b")}
    offsets = {"member-a": 17, "member-b": 4}
    for name, member in members.items():
        assert member.heartbeat(name, GROUP, "told").code == 0

    def ask(client_id: str = "") -> dict[str, dict[MessageQueue, int]]:
        more = {"clientAddr": client_id} if client_id else {}
        opaque = broker.send(223, {"topic": "told", "group": GROUP, **more})
        for name in [client_id] if client_id else members:
            member = members[name]
            member.told.clear()
            while not any(each.code == 221 for each in member.told):
                member.receive()
            [told] = [each for each in member.told if each.code == 221]
            assert told.code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
            assert (told.fields["topic"], told.fields["group"]) == ("told", GROUP)
            status = ConsumerStatus(message_queue_table=javajson.Keyed({queue: offsets[name]}))
            member.connection.respond(told, Command(0, body=javajson.encode(status)))
            member.flush()
        answer = broker.answer(opaque)
        assert answer.code == 0, answer.remark
        table = javajson.decode(answer.body, ConsumerStatus, "223").consumer_table
        return {name: dict(each.items) for name, each in table.items()}

    assert ask() == {name: {queue: offset} for name, offset in offsets.items()}
    assert ask("member-b") == {"member-b": {queue: 4}}
    refused = broker.ask(223, {"topic": "told", "group": GROUP, "clientAddr": "nobody"})
    assert refused.code == ResponseCode.CONSUMER_NOT_ONLINE
