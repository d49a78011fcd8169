"""How many delayed messages wait, by the topic that they are for (61)."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.gateway.remoting.client import Client

from rockgate.gateway.remoting.processors.delays import COUNTED_MAX, DelayRequests
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.statistics import TimerMetrics
from rockgate.protocol.remoting.command import Command

HOUR_MS = 3_600_000


def counts(broker: Client) -> dict[str, int]:
    answer = broker.ask(61)
    assert answer.code == 0, answer.remark
    found = javajson.decode(answer.body, TimerMetrics, "61")
    now_ms = time.time() * 1000
    assert abs(found.data_version.timestamp - now_ms) < HOUR_MS
    assert all(abs(each.time_stamp - now_ms) < HOUR_MS for each in found.timing_count.values())
    return {topic: each.count for topic, each in found.timing_count.items()}


def later(broker: Client, topic: str, **properties: str) -> Command:
    return broker.publish(topic, properties={"UNIQ_KEY": f"key-{topic}", **properties})


def test_messages_that_wait_for_a_time_are_counted_by_topic(broker: Client) -> None:
    due = {"TIMER_DELIVER_MS": str(int(time.time() * 1000) + HOUR_MS)}
    handles = [later(broker, "timed-a", **due).fields["recallHandle"] for _ in range(3)]
    later(broker, "timed-b", TIMER_DELAY_SEC="3600")
    # Those that wait by level are no timers, as in RocketMQ.
    later(broker, "timed-c", DELAY="18")
    found = counts(broker)
    assert (found["timed-a"], found["timed-b"]) == (3, 1)
    assert "timed-c" not in found
    recall = {"producerGroup": "producers", "topic": "timed-a", "recallHandle": handles[0]}
    assert broker.ask(370, recall).code == 0
    assert counts(broker)["timed-a"] == 2


async def test_more_than_one_request_counts_is_refused_with_what_to_run_instead() -> None:
    async def scan(_: Any) -> Any:
        return SimpleNamespace(waiting=COUNTED_MAX + 1, next=-1, now_ms=0, counts=[])

    admin = MagicMock(scan=scan)
    requests = DelayRequests(delays=MagicMock(), admin=admin, durability=MagicMock())
    with pytest.raises(Refused, match="rockgate delay list"):
        await requests.metrics(Command(61), MagicMock())
