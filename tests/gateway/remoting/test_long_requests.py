"""Requests whose answers have very many rows: others have their turn between them."""

import asyncio
import json
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from rockgate.gateway.remoting.admin import dead_letters
from rockgate.gateway.remoting.admin.dead_letters import DeadLetterAdmin
from rockgate.gateway.remoting.groups.clients import Client
from rockgate.gateway.remoting.processors import admin
from rockgate.gateway.remoting.processors.admin import OperatorRequests
from rockgate.gateway.remoting.processors.clients import ClientRequests
from rockgate.gateway.remoting.processors.topics import TopicRequests
from rockgate.gateway.remoting.server import long_answers
from rockgate.protocol.remoting.command import Command

COUNT = 50


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (long_answers, admin, dead_letters):
        monkeypatch.setattr(module, "TURN_SECONDS", 0.0)


async def answered(answer: Any) -> tuple[Any, int]:
    """A response, and how often other work had a turn before it."""
    assert isinstance(answer, Awaitable)
    task, turns = asyncio.ensure_future(answer), 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    return task.result(), turns


async def test_the_groups_that_read_a_topic_are_listed_over_many_turns() -> None:
    groups = [SimpleNamespace(name=f"now-{number}", subscriptions={"t"}) for number in range(COUNT)]
    groups.append(SimpleNamespace(name="elsewhere", subscriptions={"u"}))
    store, clients = MagicMock(), MagicMock()
    store.progress.groups_of.return_value = iter(["now-0", *map(str, range(COUNT))])
    clients.consumer_groups.return_value = iter(groups)
    requests = TopicRequests(
        store=store,
        topics=MagicMock(),
        clients=clients,
        puller=MagicMock(),
        durability=MagicMock(),
        broker_name="b",
    )
    answer, turns = await answered(requests.readers(Command(300, {"topic": "t"}), MagicMock()))
    named = json.loads(answer.body)["groupList"]
    assert sorted(named) == sorted([f"now-{n}" for n in range(COUNT)] + [*map(str, range(COUNT))])
    assert turns >= 2 * COUNT


async def test_the_producers_of_a_group_are_listed_over_many_turns() -> None:
    clients = MagicMock()
    members = [Client(f"c{number}", MagicMock(), "JAVA", 1, 0) for number in range(COUNT)]
    clients.producers.return_value = members
    requests = ClientRequests(
        clients=clients,
        settings=MagicMock(),
        topics=MagicMock(),
        lookup=MagicMock(),
        clock=MagicMock(),
        broker_name="b",
    )
    asked = Command(204, {"producerGroup": "g"})
    answer, turns = await answered(requests.producer_connections(asked, MagicMock()))
    told = json.loads(answer.body)["connectionSet"]
    assert [each["clientId"] for each in told] == [f"c{number}" for number in range(COUNT)]
    assert turns >= COUNT


@pytest.mark.parametrize("kind", ["delays", "halves"])
async def test_messages_are_described_over_many_turns(kind: str) -> None:
    class Admin:
        async def describe(self, id_: str, *_: object, **__: object) -> None:
            return None

    requests = OperatorRequests(
        delays=Admin(),  # type: ignore[arg-type]
        halves=Admin(),  # type: ignore[arg-type]
        dead_letters=MagicMock(),
        empty=MagicMock(),
        durability=MagicMock(),
        log_checks=MagicMock(),
    )
    describe = requests.describe_delays if kind == "delays" else requests.describe_halves
    body = json.dumps([str(number) for number in range(COUNT)]).encode()
    answer, turns = await answered(describe(Command(0, {}, body), MagicMock()))
    assert json.loads(answer.body) == {"found": {}}
    assert turns >= COUNT


async def test_queues_of_dead_letters_are_listed_over_many_turns() -> None:
    store = MagicMock()
    store.topics = [SimpleNamespace(name=f"%DLQ%{n}", id=b"") for n in range(COUNT)]
    store.queues.of.return_value = [
        SimpleNamespace(queue_id=0, log_start=0, find=lambda offset: None)
    ]
    dead_letters = DeadLetterAdmin(
        topics=store.topics,
        queues=store.queues,
        reader=store.reader,
        appender=store.appender,
        cold_reads=MagicMock(),
        resent=MagicMock(),
        transcoder=MagicMock(),
        end=lambda queue: 0,
    )
    told, turns = await answered(dead_letters.queues())
    assert [each.group for each in told.queues] == [str(number) for number in range(COUNT)]
    assert turns >= COUNT
