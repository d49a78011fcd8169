"""How do Kafka clients over a gateway compare with RocketMQ's own client, and with Kafka?

Defends, as medians of the rounds, with a RocketMQ of two masters whose pulls are tuned as the guide
says:

- produce of 1 KB to one partition, idempotent librdkafka over a gateway: at least 1.2 times the
  rate of RocketMQ's Java client direct (one thread, batches of 100, one queue);
- consume of the same: at least twice the rate of its push consumer;
- a record of 100 B becomes a message in 1.3 µs if records are alike, in 3 µs if not;
- Spark writes and counts 200,000 records of 100 B in 4 partitions in at most 1.3 times the time
  that it takes with Apache Kafka;
- after kill -9 of one of two gateways, clients continue within 5 s.

    python -m bench cluster             everything; the results are written to bench/results/
    python -m bench.cluster --quick     a smoke test of a minute, not written

Contenders take turns over the same brokers, each on a topic of its own. Processor time is that of
the gateway, or of the client where there is none.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from bench.gateways import Behind, Gateway
from bench.load import rdkafka
from bench.load.java import JavaLoad
from bench.measure import results
from bench.measure.procfs import cpu_seconds
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import KafkaPeer, RocketMQPeer, jars
from bench.peers.rocketmq import RocketMQMaster
from rockgate.gateway.transcode.remote.sent_records import to_messages
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.kafka.records.record import Record, build_batch, open_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, JAVA, KAFKA = "gateway", "java direct", "kafka"
SIZE, SMALL = 1024, 100
BATCH = 100
SPARK_PARTITIONS = 4
RECORDS = 1_000
NOW_MS = 1_700_000_000_000
PRODUCE, CONSUME = "produce 1 KB [1/s]", "consume 1 KB [1/s]"
SPARK = "Spark writes and counts [s]"
GAP = "after kill -9 clients go on [s]"
TUNED = {
    "maxTransferCountOnMessageInMemory": "100000",
    "maxTransferCountOnMessageInDisk": "100000",
    "maxTransferBytesOnMessageInDisk": "262144",
}


class Plan(NamedTuple):
    """The amount of work."""

    rounds: int
    messages: int
    java_seconds: float
    rows: int
    kills: int


FULL = Plan(rounds=3, messages=200_000, java_seconds=4.0, rows=200_000, kills=5)
QUICK = Plan(rounds=1, messages=20_000, java_seconds=1.0, rows=5_000, kills=1)


@contextmanager
def cluster() -> Iterator[Behind]:
    """Two masters."""
    with (
        RocketMQPeer(settings=TUNED) as peer,
        RocketMQMaster(peer, "broker-b", settings=TUNED) as second,
    ):
        other = second.daemon.pid
        assert other is not None
        yield Behind("{}:{}".format(*peer.namesrv), [peer.pid, other])


# One partition


def one_partition(sampling: Sampling, found: Behind, folder: Path, plan: Plan) -> None:
    """Produce and consume beside the Java client, in turns."""
    load = JavaLoad(folder, "RocketMQLoad")
    gateway = Gateway(found, folder)
    try:
        for turn in range(plan.rounds):
            ours, theirs = f"ours-{turn}", f"java-{turn}"
            for topic in (ours, theirs):
                rdkafka.create_topic(gateway.address, topic, 1)
            steps = [
                lambda topic=ours: through_gateway(sampling, gateway, topic, plan),
                lambda topic=theirs: direct(sampling, load, found, topic, plan),
            ]
            for step in steps if turn % 2 == 0 else reversed(steps):
                step()
    finally:
        gateway.stop()


def through_gateway(sampling: Sampling, gateway: Gateway, topic: str, plan: Plan) -> None:
    """Librdkafka over a gateway."""
    for case, work in ((PRODUCE, _produce), (CONSUME, rdkafka.consume)):
        before = cpu_seconds(gateway.pid)
        done = work(gateway.address, topic, SIZE, plan.messages)
        sampling.add(case, OURS, done.per_second)
        used = (cpu_seconds(gateway.pid) - before) / plan.messages * 1e6
        sampling.add(f"processor time of {case}".replace("1/s", "µs"), OURS, used)


def _produce(bootstrap: str, topic: str, size: int, count: int) -> rdkafka.Load:
    return rdkafka.produce(bootstrap, topic, size, count, **{"enable.idempotence": True})


def direct(sampling: Sampling, load: JavaLoad, found: Behind, topic: str, plan: Plan) -> None:
    """RocketMQ's Java client."""
    rate, _ = load.run(found.name_server, "batch", topic, plan.java_seconds, BATCH)
    sampling.add(PRODUCE, JAVA, rate)
    load.run(found.name_server, "fill", topic, 0, plan.messages)
    [rate, *_] = load.run(found.name_server, "consume", topic, 0, plan.messages)
    sampling.add(CONSUME, JAVA, rate)


# One record


def one_record(sampling: Sampling, rounds: int) -> None:
    """How much processor time a record takes to become a message."""
    random = Random(1)
    alike = [Record(at, NOW_MS, b"key%05d" % at, bytes(SMALL), ()) for at in range(RECORDS)]
    varied = [
        Record(
            at,
            NOW_MS + random.randrange(1000),
            None if at % 3 else b"k" * random.randrange(1, 30),
            bytes(random.randrange(1, 2 * SMALL)),
            (("trace", b"x" * random.randrange(1, 20)),) if at % 2 else (),
        )
        for at in range(RECORDS)
    ]
    for name, records in (("alike", alike), ("any", varied)):
        batch = bytes(build_batch(records, base_offset=0))
        header = read_header(batch)
        for _ in range(5 * rounds):
            began = time.process_time()
            for _ in range(20):
                to_messages(open_records(batch, header), header, born_ms=NOW_MS)
            taken = (time.process_time() - began) / 20 / RECORDS * 1e6
            sampling.note(case_of(name), OURS, taken)
        sampling.tell(f"{case_of(name)}: {sampling.median(case_of(name), OURS):.3g}")


def case_of(name: str) -> str:
    """The name of a case."""
    return f"a record becomes a message, {name} [µs]"


# Spark


def with_spark(sampling: Sampling, found: Behind, folder: Path, plan: Plan) -> None:
    """Spark over a gateway, and over Apache Kafka, in one session."""
    from rockgate.pipeline.spark.session import open_session

    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g"}
    with ExitStack() as resources:
        kafka = resources.enter_context(KafkaPeer())
        gateway = Gateway(found, folder)
        resources.callback(gateway.stop)
        spark = open_session("bench", master="local[2]", extra=settings)
        resources.callback(spark.stop)
        servers = {OURS: gateway.address, KAFKA: kafka.bootstrap}
        for name, bootstrap in servers.items():
            sampling.tell(f"warming up {name}")
            write_and_count(spark, bootstrap, "warm-up", plan.rows // 10)
        for turn in range(plan.rounds):
            order = list(servers.items())
            for name, bootstrap in order if turn % 2 == 0 else reversed(order):
                taken = write_and_count(spark, bootstrap, f"spark-{turn}", plan.rows)
                sampling.add(SPARK, name, taken)


def write_and_count(spark: SparkSession, bootstrap: str, topic: str, count: int) -> float:
    """Write rows, read them back, and count them; how long both took."""
    rdkafka.create_topic(bootstrap, topic, SPARK_PARTITIONS)
    table = spark.range(0, count, 1, SPARK_PARTITIONS).selectExpr(
        f"int(id % {SPARK_PARTITIONS}) partition", f"rpad(string(id), {SMALL}, 'x') value"
    )
    options = {"kafka.bootstrap.servers": bootstrap}
    began = time.perf_counter()
    table.write.format("kafka").options(topic=topic, **options).save()
    read = spark.read.format("kafka").options(subscribe=topic, **options).load().count()
    taken = time.perf_counter() - began
    if read != count:
        raise rdkafka.LoadFailed(f"Spark read {read} of {count} rows")
    return taken


# The end of a gateway


def after_kill(sampling: Sampling, found: Behind, folder: Path, plan: Plan) -> None:
    """How long a producer and a consumer wait when one of two gateways is killed."""
    for turn in range(plan.kills):
        gateways = [Gateway(found, folder) for _ in range(2)]
        try:
            bootstrap = ",".join(each.address for each in gateways)
            topic = f"killed-{turn}"
            rdkafka.create_topic(bootstrap, topic, 4)
            sampling.add(GAP, OURS, gap_after_kill(bootstrap, topic, gateways[turn % 2]))
        finally:
            for each in gateways:
                each.end()


def gap_after_kill(bootstrap: str, topic: str, gateway: Gateway) -> float:
    """The time from the kill to the last partition's next confirmation."""
    settings = {"enable.idempotence": True, "delivery.report.only.error": False}
    delivery = rdkafka.Delivery(bootstrap, **settings)
    deadline = time.monotonic() + rdkafka.SECONDS_MAX
    for partition in range(4):
        delivery.send(topic, bytes(SMALL), partition, deadline)
    delivery.finish(deadline)
    gateway.kill()
    began = time.monotonic()
    for partition in range(4):
        delivery.send(topic, bytes(SMALL), partition, deadline)
    delivery.finish(deadline)
    return time.monotonic() - began


def run(plan: Plan = FULL) -> Report:
    """Measure everything, and report which bars hold."""
    report = Report(
        name="cluster",
        command="python -m bench cluster",
        question="How do Kafka clients over a gateway compare with RocketMQ's own and with Kafka?",
        peers={"rocketmq": jars.version("rocketmq"), "kafka": jars.version("kafka")},
        notes={"plan": "full" if plan == FULL else "quick", "cores": os.cpu_count() or 0},
    )
    sampling = Sampling(report)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        one_record(sampling, plan.rounds)
        with cluster() as found:
            one_partition(sampling, found, folder, plan)
            after_kill(sampling, found, folder, plan)
            with_spark(sampling, found, folder, plan)
    report.bars = bars(sampling)
    return report


def bars(sampling: Sampling) -> list[Bar]:
    """The bars, by the medians."""

    def ratio(case: str, other: str) -> float:
        return round(sampling.median(case, OURS) / sampling.median(case, other), 3)

    return [
        Bar(name=PRODUCE, measured=ratio(PRODUCE, JAVA), at_least=1.2, unit="times Java's"),
        Bar(name=CONSUME, measured=ratio(CONSUME, JAVA), at_least=2.0, unit="times Java's"),
        Bar(
            name=case_of("alike"),
            measured=sampling.median(case_of("alike"), OURS),
            at_most=1.3,
            unit="µs",
        ),
        Bar(
            name=case_of("any"),
            measured=sampling.median(case_of("any"), OURS),
            at_most=3.0,
            unit="µs",
        ),
        Bar(name=SPARK, measured=ratio(SPARK, KAFKA), at_most=1.3, unit="times Kafka's"),
        Bar(name=GAP, measured=round(sampling.median(GAP, OURS), 2), at_most=5.0, unit="s"),
    ]


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    arguments = command_line("cluster", __doc__, quick="a smoke test of a minute").parse_args()
    report = run(QUICK if arguments.quick else FULL)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
