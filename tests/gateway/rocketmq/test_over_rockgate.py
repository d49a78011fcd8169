"""A fleet of gateways over one rockgate server, which takes the place of the cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from confluent_kafka import Consumer, Producer
from tests.chaos.fleet import fleet
from tests.gateway.rocketmq.kafka_side import SECONDS_MAX, create, values_of
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.sdk import Message
from rockgate.sdk import Producer as SdkProducer

COUNT = 400
PARTITIONS = 4


def test_two_gateways_share_the_topics_of_one_server(tmp_path: Path) -> None:
    with RunningServer(tmp_path, rocketmq=True) as server:
        name_server = "{}:{}".format(*server.address("namesrv"))
        gateways = fleet(name_server, tmp_path, 2)
        try:
            kafka = ",".join(each.address for each in gateways)
            create(kafka, "shared", PARTITIONS)
            producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": True})
            for at in range(COUNT):
                producer.produce("shared", b"%d" % at, partition=at % PARTITIONS)
            assert producer.flush(SECONDS_MAX) == 0
            # Both lead some of the partitions, and what they stored is one log.
            for partition in range(PARTITIONS):
                found = values_of(kafka, "shared", COUNT // PARTITIONS, partition)
                assert found == [b"%d" % at for at in range(partition, COUNT, PARTITIONS)]
            direct = values_of(server.bootstrap, "shared", COUNT // PARTITIONS)
            assert direct == [b"%d" % at for at in range(0, COUNT, PARTITIONS)]
            check_group(kafka)
            asyncio.run(check_rocketmq(name_server, kafka))
            # One dies, and clients continue with the other.
            gateways[0].kill()
            producer.produce("shared", b"after", partition=0)
            assert producer.flush(SECONDS_MAX) == 0
        finally:
            for each in gateways:
                each.end()
        server.stop_cleanly()


def check_group(kafka: str) -> None:
    settings = {"bootstrap.servers": kafka, "group.id": "readers", "auto.offset.reset": "earliest"}
    members = [Consumer(settings) for _ in range(2)]
    for each in members:
        each.subscribe(["shared"])

    def is_divided() -> bool:
        for each in members:
            each.poll(0.1)
        return [len(each.assignment()) for each in members] == [2, 2]

    wait_until(is_divided, "both members have two partitions", SECONDS_MAX)
    for each in members:
        each.close()


async def check_rocketmq(name_server: str, kafka: str) -> None:
    async with SdkProducer(name_server, group="direct") as producer:
        sent = await producer.send(Message("shared", b"direct"))
    found = await asyncio.to_thread(
        values_of, kafka, "shared", COUNT // PARTITIONS + 1, sent.queue.id
    )
    assert found[-1] == b"direct"
