"""How many requests wait for their answers, by RocketMQ's names."""

from __future__ import annotations

from tests.gateway.remoting.client import Client
from tests.gateway.remoting.statistics.test_requests import table
from tests.waiting import wait_until

from rockgate.gateway.remoting.messages.long_polls import LongPolls
from rockgate.gateway.remoting.server.overload import Overload
from rockgate.gateway.remoting.statistics.request_queues import RequestQueues
from rockgate.gateway.storage.config import OverloadConfig


class Queues:
    """Requests in flight, and what is reported of them."""

    def __init__(self, **settings: int | bool) -> None:
        self.overload = Overload[str](OverloadConfig(**settings))  # type: ignore[arg-type]
        self.polls = LongPolls(10, 1 << 20)
        self.late_seconds = 0.0
        self.now_ms = 1_000
        self._queues = RequestQueues(
            in_flight=self.overload,
            suspended=self.polls,
            late_seconds=lambda: self.late_seconds,
            now_ms=lambda: self.now_ms,
        )

    def __getitem__(self, name: str) -> str:
        return self._queues.table()[name]


def test_each_queue_has_what_is_in_flight_of_its_kind() -> None:
    queues = Queues()
    for kind, count in {"send": 1, "pull": 2, "ack": 3, "transaction": 4, "admin": 5}.items():
        for _ in range(count):
            queues.overload.kinds[kind].enter()
    assert queues["sendThreadPoolQueueSize"] == "1"
    assert queues["pullThreadPoolQueueSize"] == queues["litePullThreadPoolQueueSize"] == "2"
    assert queues["ackThreadPoolQueueSize"] == "3"
    assert queues["EndTransactionQueueSize"] == "4"
    assert queues["queryThreadPoolQueueSize"] == "5"


def test_a_suspended_pull_is_in_no_queue() -> None:
    queues = Queues()
    pulls = queues.overload.kinds["pull"]
    for _ in range(3):
        pulls.enter()
    assert queues.polls.begin(object(), 100) is None  # type: ignore[arg-type]
    assert queues["pullThreadPoolQueueSize"] == "2"


def test_the_head_of_a_queue_waits_for_the_loop_and_a_send_for_the_disk_too() -> None:
    queues = Queues()
    queues.late_seconds = 0.02
    assert queues["pullThreadPoolQueueHeadWaitTimeMills"] == "20"
    assert queues["sendThreadPoolQueueHeadWaitTimeMills"] == "20"
    queues.overload.stalled(True, 1_000)
    queues.overload.wait("first", 1_000)
    queues.overload.wait("second", 1_300)
    queues.now_ms = 1_350
    assert queues["sendThreadPoolQueueHeadWaitTimeMills"] == "350"
    assert queues["pullThreadPoolQueueHeadWaitTimeMills"] == "20"


def test_a_queue_s_capacity_is_the_bound_of_its_kind() -> None:
    queues = Queues(send_in_flight_max=7)
    assert queues["sendThreadPoolQueueCapacity"] == "7"
    assert queues["EndTransactionThreadPoolQueueCapacity"] == "100000"
    assert Queues(enabled=False)["sendThreadPoolQueueCapacity"] == str(2**31 - 1)


def test_a_running_broker_does_not_report_a_pull_that_waits_for_messages(broker: Client) -> None:
    broker.publish("nothing-new")
    held = broker.hold("nothing-new", 1)
    # 28 itself is answered at once, and is not in flight.
    assert table(broker)["pullThreadPoolQueueSize"] == "0"
    assert table(broker)["queryThreadPoolQueueSize"] == "0"
    broker.publish("nothing-new")
    assert broker.answer(held).code == 0
    wait_until(lambda: table(broker)["pullThreadPoolQueueSize"] == "0", "none is left")
