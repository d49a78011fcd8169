"""A real server whose disk makes appends wait: what each listener does then, and afterwards."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.gateway.kafka.raw import RawClient
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer, environment
from tests.waiting import wait_until

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import create_topics as creating
from rockgate.protocol.kafka.messages import fetch as fetching
from rockgate.protocol.kafka.messages import heartbeat as beating
from rockgate.protocol.kafka.messages import offset_commit as committing
from rockgate.protocol.kafka.messages import produce as producing
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.kafka.schema import decode
from rockgate.protocol.remoting.codes import ResponseCode

SEGMENT = 1 << 20
PROMPTLY_S = 1.0
BUSY = ResponseCode.SYSTEM_BUSY

STICKING = """
import os, time
from rockgate.store.files.interface import DiskDirectory

allocate = DiskDirectory.allocate

def sticking(self, name, size):
    while os.path.exists(os.environ["DISK_STICKS_WHILE"]):
        time.sleep(0.005)
    return allocate(self, name, size)

DiskDirectory.allocate = sticking
"""


class Sticking:
    """A server whose disk creates no file for as long as a file of the test is there."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self._trigger = folder / "sticks"
        patch = folder / "patch"
        patch.mkdir()
        (patch / "sitecustomize.py").write_text(STICKING)
        rooms = environment()["PYTHONPATH"]
        self.server = RunningServer(
            folder,
            settings=[f"store.segment_bytes={SEGMENT}", *settings],
            variables={"PYTHONPATH": f"{patch}:{rooms}", "DISK_STICKS_WHILE": str(self._trigger)},
            rocketmq=True,
        )

    def stick(self) -> None:
        self._trigger.touch()

    def free(self) -> None:
        self._trigger.unlink(missing_ok=True)

    def metric(self, name: str) -> float:
        with socket.create_connection(self.server.address("http"), timeout=60) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")
            page = client.makefile("rb").read().decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def fill(self, broker: Client) -> None:
        """Send until the log has no room for more."""
        while broker.publish("shop", bytes(64 << 10)).code == ResponseCode.SUCCESS:
            pass

    def busy(self, broker: Client) -> None:
        """Send until sends are refused at once."""
        self.stick()
        self.fill(broker)

        def is_rejected() -> bool:
            return (broker.publish("shop").remark or "").startswith("[REJECTREQUEST]")

        wait_until(is_rejected, "sends are rejected at once")


@pytest.fixture
def sticking(tmp_path: Path) -> Iterator[Sticking]:
    made = Sticking(tmp_path)
    with made.server:
        try:
            yield made
        finally:
            made.free()


def produce(client: RawClient) -> producing.ProduceResponse:
    ask_produce(client)
    return client.receive(producing.ProduceResponse, 9)


def ask_produce(client: RawClient) -> None:
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"v")], base_offset=0)
    data = producing.PartitionProduceData(index=0, records=bytes(batch))
    topic = producing.TopicProduceData(name="orders", partition_data=[data])
    request = producing.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    client.send(ApiKey.PRODUCE, 9, request)


def produced(client: RawClient, count: int) -> list[producing.ProduceResponse]:
    """The responses to that many requests, which may arrive together."""
    answers: list[producing.ProduceResponse] = []
    while len(answers) < count:
        data = client.socket.recv(1 << 16)
        assert data, "the server closed the connection"
        answers += [
            decode(producing.ProduceResponse, 9, answer.body)
            for answer in client.connection.receive_data(data)
        ]
    return answers


def offset_of(answer: producing.ProduceResponse) -> int:
    told = answer.responses[0].partition_responses[0]
    assert told.error_code == ErrorCode.NONE
    return told.base_offset


def create(client: RawClient) -> None:
    topic = creating.CreatableTopic(
        name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    request = creating.CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
    answer = client.call(ApiKey.CREATE_TOPICS, 5, request, creating.CreateTopicsResponse)
    [told] = answer.topics
    assert isinstance(told, creating.CreatableTopicResult)
    assert told.error_code == ErrorCode.NONE


def fetch(client: RawClient) -> None:
    place = fetching.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = fetching.FetchTopic(topic="orders", partitions=[place])
    request = fetching.FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic])
    answer = client.call(ApiKey.FETCH, 11, request, fetching.FetchResponse)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE


def beat(client: RawClient) -> None:
    request = beating.HeartbeatRequest(group_id="group", generation_id=1, member_id="nobody")
    answer = client.call(ApiKey.HEARTBEAT, 3, request, beating.HeartbeatResponse)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def commit(client: RawClient) -> None:
    place = committing.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = committing.OffsetCommitRequestTopic(name="orders", partitions=[place])
    request = committing.OffsetCommitRequest(group_id="others", topics=[topic])
    answer = client.call(ApiKey.OFFSET_COMMIT, 8, request, committing.OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.row("F-02")
@pytest.mark.row("PUT-6")
@pytest.mark.row("D-13")
def test_while_appends_wait_sends_are_refused_and_everything_else_continues(
    sticking: Sticking,
) -> None:
    server = sticking.server
    broker, kafka = Client(server.address("remoting")), RawClient(server)
    create(kafka)
    assert offset_of(produce(kafka)) == 0
    assert broker.publish("shop").code == ResponseCode.SUCCESS
    sticking.busy(broker)
    with RawClient(server) as producer:
        ask_produce(producer)
        ask_produce(producer)
        sends: list[float] = []
        others: list[float] = []
        for _ in range(50):
            began = time.monotonic()
            assert broker.publish("shop").code == BUSY
            sends.append(time.monotonic() - began)
            for act in (
                lambda: messages(broker.pull("shop")),
                lambda: broker.heartbeat("me", "group", "shop"),
                lambda: fetch(kafka),
                lambda: beat(kafka),
                lambda: commit(kafka),
            ):
                began = time.monotonic()
                act()
                others.append(time.monotonic() - began)
        assert max(sends) < PROMPTLY_S
        assert max(others) < PROMPTLY_S
        assert sticking.metric("rockgate_store_stalled") == 1
        assert sticking.metric(
            'rockgate_remoting_refused_total{kind="send",reason="REJECTREQUEST"}'
        )
        began = time.monotonic()
        threading.Timer(0.6, sticking.free).start()
        late = produced(producer, 2)
        assert time.monotonic() - began > 0.5, "not before the disk goes on"
        assert [offset_of(answer) for answer in late] == [1, 2], "in order, and without an error"
        assert 500 < late[0].throttle_time_ms <= 1_000
    wait_until(lambda: broker.publish("shop").code == ResponseCode.SUCCESS, "sends are taken again")
    assert sticking.metric("rockgate_store_stalled") == 0
    assert sticking.metric("rockgate_store_stalls_total") >= 1
    assert sticking.metric("rockgate_slow_appends_total") >= 1
    assert "appends wait for the disk" in server.log
    assert "slow append" in server.log
    assert "Traceback" not in server.log
    kafka.socket.close()
    broker.socket.close()


def test_a_broker_whose_disk_is_stuck_reports_it_and_the_sends_that_wait(tmp_path: Path) -> None:
    made = Sticking(tmp_path, "overload.send_wait_ms_max=60s", "overload.busy_ms_min=60s")

    def figures(client: Client) -> dict[str, int]:
        table = json.loads(bytes(client.ask(28).body))["table"]
        names = (
            "pageCacheLockTimeMills",
            "sendThreadPoolQueueSize",
            "sendThreadPoolQueueHeadWaitTimeMills",
        )
        return {name: int(table[name]) for name in names}

    with made.server as server:
        broker, asking = Client(server.address("remoting")), Client(server.address("remoting"))
        assert broker.publish("shop").code == ResponseCode.SUCCESS
        assert figures(asking)["pageCacheLockTimeMills"] == 0
        made.stick()
        sends = [broker.begin_publish("shop", bytes(64 << 10)) for _ in range(40)]
        wait_until(lambda: figures(asking)["sendThreadPoolQueueSize"] > 0, "sends wait")
        wait_until(lambda: figures(asking)["pageCacheLockTimeMills"] > 100, "it is stuck")
        assert figures(asking)["sendThreadPoolQueueHeadWaitTimeMills"] > 0
        made.free()
        assert {broker.answer(each).code for each in sends} == {ResponseCode.SUCCESS}
        assert figures(asking)["pageCacheLockTimeMills"] == 0
        assert figures(asking)["sendThreadPoolQueueSize"] == 0
        broker.socket.close()
        asking.socket.close()


class Bystanders(threading.Thread):
    """Clients of both listeners that pull, beat and commit, and how long each of that took."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(daemon=True)
        self._broker, self._kafka = Client(server.address("remoting")), RawClient(server)
        self._is_over = threading.Event()
        self.rounds = 0
        self.seconds_max: dict[str, float] = {}
        self.error: Exception | None = None

    def run(self) -> None:
        broker, kafka = self._broker, self._kafka
        acts: dict[str, Callable[[], object]] = {
            "pull": lambda: messages(broker.pull("shop")),
            "heartbeat": lambda: broker.heartbeat("me", "group", "shop"),
            "fetch": lambda: fetch(kafka),
            "Kafka's heartbeat": lambda: beat(kafka),
            "Kafka's commit": lambda: commit(kafka),
        }
        try:
            while not self._is_over.is_set():
                for name, act in acts.items():
                    began = time.monotonic()
                    act()
                    took = time.monotonic() - began
                    self.seconds_max[name] = max(took, self.seconds_max.get(name, 0.0))
                self.rounds += 1
        except Exception as error:  # noqa: BLE001  # the test has it
            self.error = error

    def end(self) -> None:
        self._is_over.set()
        self.join()
        self._broker.socket.close()
        self._kafka.socket.close()
        if self.error is not None:
            raise self.error


@pytest.mark.row("F-02")
@pytest.mark.row("PUT-6")
def test_sends_beyond_the_bound_are_refused_at_once_while_others_are_served(tmp_path: Path) -> None:
    bound, burst = 32, 25
    patient = ("overload.send_wait_ms_max=60s", "overload.busy_ms_min=60s")
    made = Sticking(tmp_path, f"overload.send_in_flight_max={bound}", *patient)
    with made.server as server, RawClient(server) as kafka:
        create(kafka)
        assert offset_of(produce(kafka)) == 0
        clients = [Client(server.address("remoting")) for _ in range(8)]
        assert clients[0].publish("shop", b"first").code == ResponseCode.SUCCESS
        made.stick()
        others = Bystanders(server)
        others.start()
        sends = [
            (client, body, client.begin_publish("shop", body))
            for number in range(burst)
            for client, body in ((each, os.urandom(64 << 10)) for each in clients)
        ]
        wait_until(lambda: made.metric("rockgate_remoting_sends_waiting") == bound, "sends wait")
        probe = Client(server.address("remoting"))
        for _ in range(20):
            began = time.monotonic()
            refused = probe.publish("shop")
            assert time.monotonic() - began < PROMPTLY_S
            assert (refused.code, (refused.remark or "")[:10]) == (BUSY, "[OVERLOAD]")
        seen = others.rounds
        wait_until(lambda: others.rounds > seen + 5 or others.error, "others are served")
        assert made.metric("rockgate_remoting_sends_waiting") == bound, "and sends wait on"
        made.free()
        answers = [(body, client.answer(opaque)) for client, body, opaque in sends]
        others.end()
        assert max(others.seconds_max.values()) < PROMPTLY_S, others.seconds_max
        stored = {body for body, answer in answers if answer.code == ResponseCode.SUCCESS}
        refusals = {answer.remark for body, answer in answers if body not in stored}
        assert refusals == {"[OVERLOAD]system busy, start flow control for a while"}
        assert bound <= len(stored) < len(sends) // 2
        found: list[bytes] = []
        while more := messages(probe.pull("shop", len(found))):
            found += [message.body for message in more]
        assert (found[0], set(found[1:])) == (b"first", stored), "those and no others"
        assert len(found) == len(stored) + 1
        for each in (*clients, probe):
            each.socket.close()


@pytest.mark.row("F-04")
def test_the_time_that_sends_may_wait_is_changed_while_the_server_runs(tmp_path: Path) -> None:
    made = Sticking(tmp_path, "overload.send_wait_ms_max=60s", "overload.busy_ms_min=60s")
    with made.server as server:
        broker, admin = Client(server.address("remoting")), Client(server.address("remoting"))
        assert broker.publish("shop").code == ResponseCode.SUCCESS
        made.stick()
        sends = [broker.begin_publish("shop", bytes(64 << 10)) for _ in range(40)]
        wait_until(lambda: made.metric("rockgate_remoting_sends_waiting") > 0, "sends wait")
        assert admin.ask(25, {}, b"waitTimeMillsInSendQueue=100\n").code == 0
        remarks = {broker.answer(each).remark or "stored" for each in sends}
        assert {each.partition("]")[0] for each in remarks} >= {"[TIMEOUT_CLEAN_QUEUE"}
        assert made.metric("rockgate_store_stalled") == 1, "the disk is as it was"
        made.free()
        broker.socket.close()
        admin.socket.close()


@pytest.mark.row("F-04")
def test_a_short_stall_is_no_error_for_a_send_that_waits_it_out(tmp_path: Path) -> None:
    made = Sticking(tmp_path, "overload.send_wait_ms_max=60s", "overload.busy_ms_min=60s")
    with made.server as server:
        broker = Client(server.address("remoting"))
        made.stick()
        threading.Timer(0.5, made.free).start()
        for _ in range(40):
            assert broker.publish("shop", bytes(64 << 10)).code == ResponseCode.SUCCESS
        assert made.metric("rockgate_store_stalls_total") >= 1
        broker.socket.close()


@pytest.mark.row("F-01")
def test_switched_off_no_one_waits_and_only_what_has_no_room_is_refused(tmp_path: Path) -> None:
    made = Sticking(tmp_path, "overload.enabled=false")
    with made.server as server:
        broker, kafka = Client(server.address("remoting")), RawClient(server)
        create(kafka)
        made.stick()
        made.fill(broker)
        refused = broker.publish("shop", bytes(64 << 10))
        assert refused.code == BUSY
        assert "The disk is slow" in (refused.remark or "")
        assert not made.metric("rockgate_remoting_sends_waiting")
        made.free()
        kafka.socket.close()
        broker.socket.close()
