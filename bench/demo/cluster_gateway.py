"""Shows gateways over a real RocketMQ cluster: one topic, three kinds of clients.

    make cluster-gateway-demo
    python -m bench.demo.cluster_gateway --seconds 60    ends by itself

Starts Apache RocketMQ (two masters, from Maven Central's jars), two gateways, RocketMQ's own Java
client that sends an order ten times a second, a Kafka consumer and a Spark stream that counts
orders by shop. Every step prints a line. Ctrl-C ends all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.load import rdkafka
from bench.load.java import JavaLoad
from bench.peers import RocketMQPeer
from bench.peers.daemon import Daemon
from bench.peers.errors import FetchFailed, NotReady, ToolMissing
from bench.peers.ports import HOST, free_ports
from bench.peers.rocketmq import RocketMQMaster

TOPIC = "orders"
PARTITIONS = 4
STATUS_S = 2.0
HERE = Path(__file__).parent


class Counts:
    """What was seen until now."""

    def __init__(self) -> None:
        self.consumed = 0
        self.last = ""
        self.by_shop: dict[str, int] = {}
        self.batches = 0


def main() -> int:
    """Run from the command line; 1 if something cannot be started."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=0.0, help="end after this time")
    arguments = parser.parse_args()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    folder = Path(tempfile.mkdtemp(prefix="rockgate-demo-"))
    try:
        with ExitStack() as running:
            show(running, folder, over, arguments.seconds)
    except (FetchFailed, NotReady, ToolMissing, subprocess.CalledProcessError) as failed:
        say(f"cannot continue: {failed}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say("everything has ended")
    return 0


def show(running: ExitStack, folder: Path, over: threading.Event, seconds: float) -> None:
    """Start everything, and print what arrives until the end; each step may be the last."""
    counts = Counts()
    say("Apache RocketMQ starts: a name server and the masters broker-a and broker-b")
    peer = running.enter_context(RocketMQPeer(folder / "rocketmq", broker_heap="512m"))
    if over.is_set():
        return
    running.enter_context(RocketMQMaster(peer, "broker-b"))
    name_server = "{}:{}".format(*peer.namesrv)
    say(f"RocketMQ {peer.version} is ready, name server {name_server}")
    gateways = []
    for _ in range(2):
        if over.is_set():
            return
        gateways.append(running.enter_context(gateway(name_server, folder)))
        say(f"a gateway is ready for Kafka clients on {gateways[-1]}")
    bootstrap = ",".join(gateways)
    rdkafka.create_topic(bootstrap, TOPIC, PARTITIONS)
    say(f"topic {TOPIC} has {PARTITIONS} partitions on both masters")
    program = folder / "producer"
    program.mkdir()
    java = JavaLoad(program, "DemoProducer", source=HERE)
    running.enter_context(ended(java.start(name_server, TOPIC)))
    say("RocketMQ's Java producer sends ten orders a second")
    consumer = threading.Thread(target=consume, args=(bootstrap, counts, over), daemon=True)
    consumer.start()
    say("a Kafka consumer (librdkafka, group billing) reads them")
    say("Spark starts, which takes half a minute; the first time it loads its connector")
    spark = threading.Thread(target=stream, args=(bootstrap, folder, counts, over), daemon=True)
    spark.start()
    until = time.monotonic() + seconds if seconds else float("inf")
    say("Ctrl-C ends everything")
    while not over.wait(STATUS_S) and time.monotonic() < until:
        shops = ", ".join(f"{shop}: {n}" for shop, n in sorted(counts.by_shop.items()))
        say(
            f"Kafka consumer: {counts.consumed:,} orders, the last '{counts.last}';"
            f" Spark: {counts.batches} batches{'; ' if shops else ''}{shops}"
        )
    over.set()
    say("ending")
    consumer.join(20)
    spark.join(60)


@contextlib.contextmanager
def gateway(name_server: str, folder: Path) -> Iterator[str]:
    """A gateway process; its address."""
    [port] = free_ports(1)
    address = f"{HOST}:{port}"
    daemon = Daemon(f"gateway-{port}", folder)
    command = [sys.executable, "-m", "rockgate.cli", "gateway", "--kafka", address]
    daemon.start(
        [*command, "--name-servers", name_server],
        is_ready=lambda: "ready kafka=" in daemon.log_path.read_text(),
    )
    try:
        yield address
    finally:
        daemon.stop()


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """End a process that would run for good."""
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def consume(bootstrap: str, counts: Counts, over: threading.Event) -> None:
    """Read with a Kafka client until the end."""
    from confluent_kafka import Consumer

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "billing",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    while not over.is_set():
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            counts.consumed += 1
            counts.last = bytes(message.value() or b"").decode("utf-8", "replace")
    consumer.close()


def stream(bootstrap: str, folder: Path, counts: Counts, over: threading.Event) -> None:
    """Count orders by shop with Spark until the end."""
    from rockgate.pipeline.spark.session import open_session

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = open_session("demo", master="local[2]", extra=settings)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        table = spark.readStream.format("kafka").options(
            **{"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC},
            startingOffsets="earliest",
        )
        orders = table.load().selectExpr("string(key) shop").groupBy("shop").count()
        query = (
            orders.writeStream.outputMode("complete")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .foreachBatch(noted(counts))
            .start()
        )
        say("the Spark stream is running")
        while not over.is_set() and query.isActive:
            over.wait(0.5)
        query.stop()
    finally:
        spark.stop()


def noted(counts: Counts) -> Callable[[Any, int], None]:
    """Notes the counts of a micro-batch."""

    def note(batch: Any, number: int) -> None:
        counts.by_shop = {row["shop"]: row["count"] for row in batch.collect()}
        counts.batches = number + 1

    return note


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
