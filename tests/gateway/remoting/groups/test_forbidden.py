"""A group that must not read a topic (353)."""

import json

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.remoting.pullworld import PullWorld

from rockgate.gateway.remoting.groups import forbidden
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ResponseCode


def forbid(broker: Client, topic: str, group: str, readable: bool | None = None) -> object:
    asked = {"topic": topic, "group": group}
    answer = broker.ask(353, asked if readable is None else {**asked, "readable": readable})
    assert answer.code == 0
    return json.loads(bytes(answer.body))


def test_a_group_may_read_unless_it_is_forbidden(broker: Client) -> None:
    told = {"topic": "orders", "group": "anybody"}
    assert forbid(broker, "orders", "anybody") == {**told, "readable": True}
    assert forbid(broker, "orders", "anybody", False) == {**told, "readable": False}
    assert forbid(broker, "orders", "anybody") == {**told, "readable": False}
    assert forbid(broker, "orders", "anybody", True) == {**told, "readable": True}


def test_a_pull_of_what_is_forbidden_is_refused_and_others_are_not(broker: Client) -> None:
    broker.publish("secret")
    broker.publish("open")
    forbid(broker, "secret", "group", False)
    answer = broker.pull("secret")
    assert answer.code == ResponseCode.NO_PERMISSION
    assert answer.remark == "the consumer group[group] is forbidden for topic[secret]"
    assert broker.pull("open").code == 0
    assert broker.pull("secret", consumerGroup="other").code == 0
    forbid(broker, "secret", "group", True)
    assert broker.pull("secret").code == 0


def test_what_is_forbidden_is_in_the_list_of_groups(broker: Client) -> None:
    forbid(broker, "listed", "reader", False)
    assert json.loads(bytes(broker.ask(201).body))["forbiddenTable"]["reader"] == {"listed": 4}


def test_a_group_that_is_deleted_is_forbidden_nothing(broker: Client) -> None:
    forbid(broker, "orders", "deleted", False)
    assert broker.ask(207, {"groupName": "deleted"}).code == 0
    told = {"topic": "orders", "group": "deleted", "readable": True}
    assert forbid(broker, "orders", "deleted") == told


@pytest.mark.parametrize("is_killed", [False, True])
def test_it_is_in_the_log(is_killed: bool) -> None:
    world = PullWorld()
    world.forbidden.set("orders", "g", is_forbidden=True)
    world.store.flush()
    world.kill() if is_killed else world.reopen()
    assert world.forbidden.has(("orders", "g"))
    assert not world.forbidden.has(("orders", "other"))


def test_there_is_a_bound_and_what_is_set_already_takes_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forbidden, "COUNT_MAX", 2)
    world = PullWorld()
    for _ in range(2):
        world.forbidden.set("a", "g", is_forbidden=True)
    end = world.store.log.end
    world.forbidden.set("a", "g", is_forbidden=True)
    world.forbidden.set("never", "g", is_forbidden=False)
    assert world.store.log.end == end
    world.forbidden.set("b", "g", is_forbidden=True)
    with pytest.raises(Refused, match="2 reads are forbidden; that is the maximum"):
        world.forbidden.set("c", "g", is_forbidden=True)
