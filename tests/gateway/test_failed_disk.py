"""A real server whose disk fails under it: what each listener says then, and after a restart."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.kafka.raw import RawClient
from tests.gateway.remoting.client import Client, messages
from tests.gateway.remoting.popclient import PopClient, Taken
from tests.gateway.server import RunningServer, environment
from tests.waiting import wait_until

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import create_topics as creating
from rockgate.protocol.kafka.messages import delete_topics as deleting
from rockgate.protocol.kafka.messages import init_producer_id as initiating
from rockgate.protocol.kafka.messages import offset_commit as committing
from rockgate.protocol.kafka.messages import produce as producing
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.remoting.codes import ResponseCode

STEPS = (
    *("epoch", "progress", "compaction", "checkpoint", "keys", "retention", "snapshot"),
    *("producers", "deadlines", "markers", "record-delays"),
    *("clients", "locks", "checks", "brokers", "pop-expiry", "pop-progress", "pop-clock"),
    *(
        "slow-groups",
        "share-sessions",
        "share-locks",
        "statistics",
        "delegation-tokens",
        "internal-topics",
    ),
)
"""Everything that a server does now and then, each contained by its name."""

BREAKING = """
import os
from rockgate.store.files import interface as files, mapped

def breaking(real):
    def sync(*arguments):
        if os.path.exists(os.environ["DISK_FAILS_WHILE"]):
            raise OSError(5, "Input/output error")
        return real(*arguments)
    return sync

for kind in (files.DiskFile, files.DiskDirectory, mapped.DiskMapping):
    kind.sync = breaking(kind.sync)
"""


class Breakable:
    """A server whose syncs fail for as long as a file is there."""

    def __init__(self, folder: Path, flush: str) -> None:
        self._trigger = folder / "fails"
        patch = folder / "patch"
        patch.mkdir()
        (patch / "sitecustomize.py").write_text(BREAKING)
        rooms = environment()["PYTHONPATH"]
        self.server = RunningServer(
            folder,
            settings=[f"store.flush={flush}", "store.checkpoint_interval_ms=100"],
            variables={"PYTHONPATH": f"{patch}:{rooms}", "DISK_FAILS_WHILE": str(self._trigger)},
            rocketmq=True,
        )

    def fail(self) -> None:
        self._trigger.touch()

    def mend(self) -> None:
        self._trigger.unlink()

    def get(self, path: str) -> tuple[int, str]:
        with socket.create_connection(self.server.address("http"), timeout=60) as client:
            client.sendall(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
            head, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode()


@pytest.fixture(params=["async", "sync"])
def breakable(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Breakable]:
    made = Breakable(tmp_path, request.param)
    with made.server:
        yield made


def produce(client: RawClient) -> ErrorCode:
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"v")], base_offset=0)
    data = producing.PartitionProduceData(index=0, records=bytes(batch))
    topic = producing.TopicProduceData(name="orders", partition_data=[data])
    request = producing.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    answer = client.call(ApiKey.PRODUCE, 9, request, producing.ProduceResponse)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def create(client: RawClient, name: str) -> ErrorCode:
    topic = creating.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    request = creating.CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
    answer = client.call(ApiKey.CREATE_TOPICS, 5, request, creating.CreateTopicsResponse)
    [told] = answer.topics
    assert isinstance(told, creating.CreatableTopicResult)
    return ErrorCode(told.error_code)


def delete(client: RawClient, name: str) -> ErrorCode:
    request = deleting.DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000)
    answer = client.call(ApiKey.DELETE_TOPICS, 4, request, deleting.DeleteTopicsResponse)
    [told] = answer.responses
    assert isinstance(told, deleting.DeletableTopicResult)
    return ErrorCode(told.error_code)


def commit(client: RawClient) -> ErrorCode:
    place = committing.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = committing.OffsetCommitRequestTopic(name="orders", partitions=[place])
    request = committing.OffsetCommitRequest(group_id="group", topics=[topic])
    answer = client.call(ApiKey.OFFSET_COMMIT, 8, request, committing.OffsetCommitResponse)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def init(client: RawClient, transactional_id: str | None) -> ErrorCode:
    request = initiating.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    kind = initiating.InitProducerIdResponse
    answer = client.call(ApiKey.INIT_PRODUCER_ID, 4, request, kind)
    return ErrorCode(answer.error_code)


def test_after_a_failed_fsync_every_listener_refuses_what_writes_until_a_restart(
    breakable: Breakable,
) -> None:
    server = breakable.server
    with RawClient(server) as kafka:
        assert create(kafka, "orders") is ErrorCode.NONE
        assert produce(kafka) is ErrorCode.NONE
        assert init(kafka, None) is ErrorCode.NONE
    broker = PopClient(server.address("remoting"))
    assert broker.publish("shop").code == ResponseCode.SUCCESS
    assert broker.publish("shop").code == ResponseCode.SUCCESS
    [held] = broker.take("shop", maxMsgNums=1)
    breakable.fail()

    def is_refused() -> bool:
        with RawClient(server) as kafka:
            return produce(kafka) is ErrorCode.KAFKA_STORAGE_ERROR

    wait_until(is_refused, "produce is refused")
    status, body = breakable.get("/ready")
    assert status == 503
    assert "Failed to fsync" in body and "Input/output error" in body
    metrics = breakable.get("/metrics")[1]
    assert "rockgate_disk_failed 1" in metrics
    for step in STEPS:
        assert f'rockgate_upkeep_failures_total{{step="{step}"}}' in metrics
    check_refused(breakable, broker)
    check_pop_refused(broker, held)
    # It may work again, but what it dropped is unknown.
    breakable.mend()
    check_refused(breakable, broker)
    check_pop_refused(broker, held)
    assert messages(broker.pull("shop"))[0].body == b"hello", "read-only until it is restarted"
    broker.socket.close()
    errors = [line for line in server.log.splitlines() if re.search(r"Z error ", line)]
    assert len(errors) == 1 and "The server is read-only" in errors[0]
    assert "Traceback" not in server.log
    assert server.stop() == 0
    server.restart()
    assert breakable.get("/ready") == (200, "ready\n")
    with RawClient(server) as kafka:
        assert produce(kafka) is ErrorCode.NONE
        assert commit(kafka) is ErrorCode.NONE
    broker = PopClient(server.address("remoting"))
    [other] = broker.take("shop")
    assert other.message.queue_offset == 1, "what was in flight still is"
    assert broker.ack(held).code == ResponseCode.SUCCESS
    broker.socket.close()


def check_refused(breakable: Breakable, broker: Client) -> None:
    with RawClient(breakable.server) as kafka:
        assert produce(kafka) is ErrorCode.KAFKA_STORAGE_ERROR
        assert create(kafka, "more") is ErrorCode.KAFKA_STORAGE_ERROR
        assert delete(kafka, "orders") is ErrorCode.KAFKA_STORAGE_ERROR
        assert commit(kafka) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert init(kafka, "transactional") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    for answer in (
        broker.publish("shop"),
        broker.publish("shop", properties={"UNIQ_KEY": "id-2", "DELAY": "3"}),
        broker.ask(15, {"consumerGroup": "g", "topic": "shop", "queueId": 0, "commitOffset": 1}),
        broker.ask(
            17,
            {
                "topic": "fresh",
                "defaultTopic": "TBW102",
                "readQueueNums": 4,
                "writeQueueNums": 4,
                "perm": 6,
                "topicFilterType": "SINGLE_TAG",
                "topicSysFlag": 0,
                "order": "false",
            },
        ),
    ):
        assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE, answer
        assert "The server is read-only" in (answer.remark or "")


def check_pop_refused(broker: PopClient, held: Taken) -> None:
    for answer in (broker.pop("shop"), broker.ack(held), broker.extend(held, 90_000)):
        assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE, answer
        assert "The server is read-only" in (answer.remark or "")
