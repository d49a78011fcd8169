"""docs/reference/pipeline.md: its commands and programs run in order, on servers of their own.

The jobs run in this process, in the one session; `--follow` makes them go once through what is
there, since nothing stops them in a test. What is for a Connect server runs at one.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.connect import ConnectServer, run_job
from tests.gateway.server import RunningServer
from tests.house.checkout import ROOT
from tests.house.markdown import Block, blocks
from tests.spark import MARKS, Record, create_topic, numbered, read_topic, send, shared_session
from typer.testing import CliRunner

from rockgate.pipeline.cli import app
from rockgate.pipeline.stream import Pace

pytestmark = [*MARKS, pytest.mark.long]

PAGE = Path("docs/reference/pipeline.md")
PREFIX = "rockgate pipeline "
CONNECT = "sc://host:15002"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """What answers at the default address: some topics of a shop."""
    with RunningServer(tmp_path_factory.mktemp("ours")) as server:
        for topic in ("orders", "payments", "shop.carts", "paid"):
            create_topic(server.bootstrap, topic, 2)
        order = json.dumps({"order": 7, "customer": "ada", "cents": 250}).encode()
        payment = json.dumps({"order": 7, "cents": 250, "method": "card"}).encode()
        send(server.bootstrap, "orders", [Record(key=b"eu-7", value=order)])
        send(server.bootstrap, "payments", [Record(key=b"p1", value=payment)])
        send(server.bootstrap, "shop.carts", numbered(10, 2))
        yield server


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """What the page calls kafka:9092."""
    with RunningServer(tmp_path_factory.mktemp("kafka")) as server:
        create_topic(server.bootstrap, "orders", 2)
        send(server.bootstrap, "orders", numbered(10, 2))
        consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
        consumer.close()
        yield server


def commands(block: Block) -> list[list[str]]:
    lines = block.text.replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix(PREFIX)) for line in lines if line.startswith(PREFIX)]


def run_there(words: list[str], ours: RunningServer, folder: Path) -> None:
    with ConnectServer(folder) as server:
        known = {CONNECT: server.address, "/mnt/archive": str(folder / "mnt")}
        words = [known.get(each, each) for each in words]
        run_job(folder, *words, "--bootstrap", ours.bootstrap)
    assert list((folder / "mnt").glob("topic=orders/date=*/*.parquet"))


def test_everything_on_the_page_runs(
    java: object,
    ours: RunningServer,
    kafka: RunningServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared_session()
    shutil.copy(ROOT / "pipeline" / "examples" / "orders.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Pace, "trigger", lambda self: {"availableNow": True})
    run = 0
    for block in blocks(PAGE):
        if block.language == "python":
            exec(compile(block.text, str(block), "exec"), {})  # The page's own.
            run += 1
        for words in commands(block) if block.language == "sh" else ():
            address = "--to" if words[0] == "mirror" else "--bootstrap"
            words = [each.replace("kafka:9092", kafka.bootstrap) for each in words]
            if CONNECT in words:
                run_there(words, ours, tmp_path)
                run += 1
                continue
            done = CliRunner().invoke(app, [*words, address, ours.bootstrap])
            assert done.exit_code == 0, f"{block}: {words}\n{done.output}\n{done.exception!r}"
            run += 1
    assert run == 19
    # What they have left behind, one thing each.
    assert (tmp_path / "orders.html").stat().st_size > 10_000
    assert [m.key() for m in read_topic(ours.bootstrap, "eu-orders", 1)] == [b"eu-7"]
    assert [m.key() for m in read_topic(ours.bootstrap, "again.shop.carts", 10, 2)]
    [paid] = read_topic(ours.bootstrap, "paid", 1, 2)
    assert json.loads(paid.value())["customer"] == "ada"
