"""Spark reads what RocketMQ's side made: committed half messages, retries and dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import pytest
from pyspark.sql import SparkSession
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer
from tests.spark import MARKS
from tests.waiting import wait_until

pytestmark = MARKS
CLIENT = f"spark {version('pyspark')}"
COMMIT, ROLL_BACK = 8, 12


@pytest.fixture(scope="module")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with RocketMQ's listeners open."""
    with RunningServer(tmp_path_factory.mktemp("rocketmq"), rocketmq=True) as running:
        yield running
        running.stop_cleanly()


def half(broker: Client, body: bytes, outcome: int) -> None:
    given = {"UNIQ_KEY": body.decode(), "KEYS": "k", "TRAN_MSG": "true", "PGROUP": "producers"}
    sent = broker.publish("paid", body, sys_flag=4, properties=given)
    assert sent.code == 0
    fields = {
        "producerGroup": "producers",
        "tranStateTableOffset": sent.fields["queueOffset"],
        "commitLogOffset": 0,
        "commitOrRollback": outcome,
    }
    assert broker.ask(37, fields).code == 0


@pytest.mark.row("T-01", "T-03", "T-04", "RTY-4")
def test_spark_reads_committed_half_messages_retries_and_dead_letters(
    spark: SparkSession, rocketmq: RunningServer
) -> None:
    broker = Client(rocketmq.address("remoting"))
    for body, outcome in ((b"committed", COMMIT), (b"rolled back", ROLL_BACK), (b"open", 0)):
        half(broker, body, outcome)
    [paid] = messages(broker.pull("paid"))
    for level in (1, -1):
        asked = {"offset": paid.position, "group": "mail", "delayLevel": level}
        assert broker.ask(36, asked).code == 0
    wait_until(lambda: bool(messages(broker.pull("%RETRY%mail"))), "the retry")
    broker.socket.close()
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", rocketmq.bootstrap)
    wanted = "paid,rmq.retry.mail,rmq.dlq.mail"
    rows = source.options(subscribe=wanted, includeHeaders="true").load().collect()
    found = {row.topic: row for row in rows}
    assert sorted(row.topic for row in rows) == sorted(wanted.split(",")), "one of each"
    for row in rows:
        assert (bytes(row.key), bytes(row.value)) == (b"k", b"committed")
        assert row.timestamp.timestamp() * 1000 == paid.born_ms
    headers = {each["key"]: bytes(each["value"]) for each in found["rmq.dlq.mail"].headers}
    assert (headers["RETRY_TOPIC"], headers["__DLQ_REASON"]) == (b"paid", b"asked")
    assert headers["UNIQ_KEY"] == b"committed"
