"""A group that is reset while members are not to learn of it by their pulls: they are sent 220."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.remoting.world import Everybody

from rockgate.gateway.remoting.groups import reset_notices
from rockgate.gateway.remoting.groups.clients import Client as Member
from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.reset_notices import ResetNotices
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.protocol.remoting.bodies.queues import MessageQueue, OffsetTable

RESET = 220
ROWS = [
    b'{"brokerName":"b","queueId":0,"topic":"t"}:5',
    b'{"brokerName":"b","queueId":1,"topic":"t"}:7',
]


@pytest.fixture
def sending(broker: Client) -> Iterator[Client]:
    """The broker's listener while members are sent their resets."""
    assert broker.ask(25, {}, b"useServerSideResetOffset=false").code == 0
    yield broker
    assert broker.ask(25, {}, b"useServerSideResetOffset=true").code == 0


def fill(broker: Client, topic: str) -> None:
    for number in range(6):
        assert broker.publish(topic, b"%d" % number).code == 0


def reset(broker: Client, topic: str, group: str, **more: object) -> None:
    fields = {"topic": topic, "group": group, "timestamp": 0, "isForce": "true", **more}
    answer = broker.ask(222, fields)
    assert answer.code == 0, answer.remark


def sent(member: Client) -> Any:
    """The next reset that a member is sent."""
    while not any(each.code == RESET for each in member.told):
        member.receive()
    return next(each for each in member.told if each.code == RESET)


def test_every_member_is_sent_the_offsets_and_its_pulls_go_on(
    connect: Callable[..., Client], sending: Client
) -> None:
    fill(sending, "sent-a")
    members = [connect(), connect()]
    for number, member in enumerate(members):
        member.heartbeat(f"client-{number}", "sent-g", "sent-a")
    reset(sending, "sent-a", "sent-g", queueId=0, offset=2)
    for member in members:
        found = sent(member)
        assert found.is_oneway
        assert {
            "topic": "sent-a",
            "group": "sent-g",
            "timestamp": "0",
        }.items() <= found.fields.items()
        queue = MessageQueue(broker_name="rockgate", queue_id=0, topic="sent-a")
        table = javajson.decode(found.body, OffsetTable, "220").offset_table
        assert table.items == {queue: 2}
        assert member.pull("sent-a", 4, consumerGroup="sent-g").code == 0
    asked = {"topic": "sent-a", "consumerGroup": "sent-g", "queueId": 0}
    assert sending.ask(14, asked).fields["offset"] == "2"
    # What members commit counts again at once: the new offset, once they have it.
    assert sending.ask(15, {**asked, "commitOffset": 3}).code == 0
    assert sending.ask(14, asked).fields["offset"] == "3"


def test_members_of_other_groups_and_groups_without_members_are_sent_nothing(
    connect: Callable[..., Client], sending: Client
) -> None:
    fill(sending, "sent-b")
    other = connect()
    other.heartbeat("client-o", "sent-other", "sent-b")
    reset(sending, "sent-b", "sent-nobody", queueId=0, offset=1)
    assert other.ask(28).code == 0
    assert [each.code for each in other.told if each.code == RESET] == []
    asked = {"topic": "sent-b", "consumerGroup": "sent-nobody", "queueId": 0}
    assert sending.ask(14, asked).fields["offset"] == "1"


def test_by_default_a_member_is_sent_nothing(
    connect: Callable[..., Client], broker: Client
) -> None:
    fill(broker, "sent-c")
    member = connect()
    member.heartbeat("client-c", "sent-c-g", "sent-c")
    reset(broker, "sent-c", "sent-c-g", queueId=0, offset=2)
    assert member.ask(28).code == 0
    assert [each.code for each in member.told if each.code == RESET] == []


class Line:
    """A connection that notes what it is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, dict[str, str], bytes]] = []

    def send_oneway(self, code: int, fields: dict[str, str], body: bytes = b"") -> None:
        self.sent.append((code, fields, body))


def joined(*languages: str) -> tuple[Clients, list[Line]]:
    clients, lines = Clients(Everybody(), 1_000), []
    for number, language in enumerate(languages):
        line: Any = Line()
        lines.append(line)
        member = Member(f"client-{number}", line, language, 400, 0)
        clients.consume(ConsumerData(group_name="g"), member, notifies=False)
    return clients, lines


def test_a_client_in_c_plus_plus_is_sent_a_list() -> None:
    clients, lines = joined("JAVA", "CPP")
    notices = ResetNotices(clients, is_enabled=True)
    notify = notices.prepare("g", {"topic": "t"}, ROWS)
    assert notify is not None
    notify()
    (_, _, java), (_, _, cpp) = lines[0].sent[0], lines[1].sent[0]
    assert java == b'{"offsetTable":{%b}}' % b",".join(ROWS)
    assert json.loads(cpp)["offsetTable"] == [
        {"brokerName": "b", "queueId": 0, "topic": "t", "offset": 5},
        {"brokerName": "b", "queueId": 1, "topic": "t", "offset": 7},
    ]


def test_what_would_be_too_much_to_send_is_left_to_the_pulls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients, _ = joined("JAVA", "JAVA")
    notices = ResetNotices(clients, is_enabled=True)
    monkeypatch.setattr(reset_notices, "BYTES_MAX", 2 * len(b"".join(ROWS)))
    assert notices.prepare("g", {}, ROWS) is not None
    assert notices.prepare("g", {}, [*ROWS, b"x"]) is None


def test_a_group_of_many_is_notified_in_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reset_notices, "TURN_SECONDS", 0.0)
    clients, lines = joined("JAVA", "JAVA", "JAVA")
    turns: list[Callable[[], None]] = []
    notify = ResetNotices(clients, is_enabled=True, soon=turns.append).prepare("g", {}, ROWS)
    assert notify is not None
    notify()
    assert [len(line.sent) for line in lines] == [1, 0, 0]
    while turns:
        turns.pop()()
    assert [len(line.sent) for line in lines] == [1, 1, 1]
