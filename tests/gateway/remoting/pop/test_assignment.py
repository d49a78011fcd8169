"""The server allocates queues, and knows whether a group pops or pulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.gateway.remoting.world import Everybody, FakeCaller, RemotingWorld

from rockgate.gateway.remoting.groups.clients import Client, Clients
from rockgate.gateway.remoting.pop.assignment import AssignmentRequests, RequestModes
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics


class AssignmentWorld(RemotingWorld):
    """The topic `wide` of five queues, and members of the group `g`."""

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.modes = RequestModes(journal)
        return [self.modes.fold]

    def open(self) -> None:
        super().open()
        self.ensure("wide", 5)
        self.clients = Clients(Everybody(), 10**9)
        self.requests = AssignmentRequests(
            modes=self.modes,
            topics=self.book,
            clients=self.clients,
            durability=self.durability,
            broker_name="here",
        )
        self.caller = FakeCaller(0)

    def join(self, *members: str) -> None:
        for number, member in enumerate(members):
            client = Client(
                client_id=member,
                caller=FakeCaller(number),  # type: ignore[arg-type]
                language="JAVA",
                version=1,
                seen_ms=0,
            )
            data = ConsumerData(group_name="g", consume_type="CONSUME_PASSIVELY")
            self.clients.consume(data, client, notifies=False)

    def query(self, member: str, **more: str) -> Any:
        body = {
            "clientId": member,
            "consumerGroup": "g",
            "topic": "wide",
            "strategyName": "AVG",
            "messageModel": "CLUSTERING",
            **more,
        }
        command = Command(400, body=javajson.encode(body))
        answer = self.requests.query(command, self.caller)  # type: ignore[arg-type]
        assert isinstance(answer, Command)
        return javajson.decode(answer.body, dict, "answer")

    def queues(self, member: str, **more: str) -> list[int]:
        found = self.query(member, **more)["messageQueueAssignments"]
        return [each["messageQueue"]["queueId"] for each in found]

    def set_mode(self, mode: str, share: int = 0, topic: str = "wide") -> None:
        body = {"consumerGroup": "g", "topic": topic, "mode": mode, "popShareQueueNum": share}
        command = Command(401, body=javajson.encode(body))
        self.requests.set_mode(command, self.caller)  # type: ignore[arg-type]


def test_members_that_pull_have_their_part_of_the_queues() -> None:
    w = AssignmentWorld()
    w.join("a", "b")
    assert w.queues("a") == [0, 1, 2]
    assert w.queues("b") == [3, 4]
    assert w.queues("a", strategyName="AVG_BY_CIRCLE") == [0, 2, 4]
    assert w.queues("stranger") == []


def test_members_that_pop_have_every_queue() -> None:
    w = AssignmentWorld()
    w.join("a", "b")
    w.set_mode("POP")
    assert w.queues("a") == [-1]
    [assigned] = w.query("b")["messageQueueAssignments"]
    assert assigned["mode"] == "POP"


def test_members_that_share_with_some_have_the_queues_of_those_that_follow() -> None:
    w = AssignmentWorld()
    w.join("a", "b", "c", "d")
    w.set_mode("POP", share=1)
    assert w.queues("a") == [0, 1, 2]
    assert w.queues("d") == [4, 0, 1]


def test_more_members_than_queues_have_one_each() -> None:
    w = AssignmentWorld()
    w.join(*"abcdefg")
    w.set_mode("POP", share=1)
    assert [w.queues(member) for member in "abcdefg"] == [[0], [1], [2], [3], [4], [0], [1]]


def test_everyone_in_a_broadcast_has_all_queues() -> None:
    w = AssignmentWorld()
    assert w.queues("a", messageModel="BROADCASTING") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "more", [{"topic": "none"}, {"strategyName": "CONSISTENT_HASH"}, {"consumerGroup": "other"}]
)
def test_without_an_assignment_the_client_keeps_what_it_has(more: dict[str, str]) -> None:
    w = AssignmentWorld()
    w.join("a")
    assert "messageQueueAssignments" not in w.query("a", **more)


def test_a_mode_is_there_after_a_restart() -> None:
    w = AssignmentWorld()
    w.set_mode("POP", share=3)
    w.kill()
    assert w.modes.of("wide", "g") == ("POP", 3)
    answer = w.requests.modes(Command(402), w.caller)  # type: ignore[arg-type]
    assert isinstance(answer, Command)
    table = javajson.decode(answer.body, dict, "answer")
    assert table["messageRequestModeMap"]["wide"]["g"]["mode"] == "POP"


@pytest.mark.parametrize(
    ("mode", "topic", "code"),
    [
        ("PUSH", "wide", ResponseCode.INVALID_PARAMETER),
        ("POP", "none", ResponseCode.TOPIC_NOT_EXIST),
        ("POP", "%RETRY%g", ResponseCode.NO_PERMISSION),
    ],
)
def test_a_mode_that_makes_no_sense_is_refused(mode: str, topic: str, code: int) -> None:
    w = AssignmentWorld()
    with pytest.raises(Refused) as refused:
        w.set_mode(mode, topic=topic)
    assert refused.value.code == code
