"""The guides that use Spark: everything on them is run, in order, in the one session.

`--follow` makes a job go once through what is there, since nothing stops it in a test.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.gateway.server import RunningServer
from tests.house.markdown import blocks
from tests.house.snippets import SPARK, addressed, guides, run_in_guide
from tests.spark import MARKS, create_topic, numbered, read_topic, send, shared_session
from typer.testing import CliRunner

from rockgate.pipeline.cli import app
from rockgate.pipeline.stream import Pace

pytestmark = MARKS
PREFIX = "rockgate pipeline "
OLD_CLUSTER = "kafka.example:9092"
ELSEWHERE = "/srv/"


@pytest.fixture
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """What a page calls its old cluster: orders in three partitions, which billing reads."""
    with RunningServer(tmp_path_factory.mktemp("old")) as server:
        create_topic(server.bootstrap, "orders", 3)
        send(server.bootstrap, "orders", numbered(9, 3))
        consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "billing"})
        places = [TopicPartition("orders", number, 2) for number in range(3)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()
        yield server


@pytest.mark.parametrize("page", guides(SPARK), ids=str)
def test_everything_on_a_guide_runs(
    java: object,
    page: Path,
    old: RunningServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared_session()
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(Pace, "trigger", lambda self: {"availableNow": True})
    names: dict[str, object] = {}
    with RunningServer(tmp_path, rocketmq=True) as server:
        monkeypatch.setenv("ROCKGATE_BOOTSTRAP_SERVER", server.bootstrap)
        for block in blocks(page):
            if "run" not in block.words:
                continue
            text = block.text.replace(OLD_CLUSTER, old.bootstrap).replace(ELSEWHERE, f"{folder}/")
            if block.language == "python":
                exec(compile(addressed(text, server), str(block), "exec"), names)  # The page's own.
            elif SPARK not in block.words:
                run_in_guide(replace(block, text=text), folder, server)
            for line in addressed(text, server).splitlines() if SPARK in block.words else ():
                if line.startswith(PREFIX):
                    done = CliRunner().invoke(app, shlex.split(line.removeprefix(PREFIX)))
                    assert done.exit_code == 0, (
                        f"{block}: {line}\n{done.output}\n{done.exception!r}"
                    )
        if page.stem == "kafka-migration":
            assert len(read_topic(server.bootstrap, "orders", 9, 3)) == 9
            assert len(read_topic(server.bootstrap, "orders-billing", 3, 3)) == 3
            assert len(read_topic(old.bootstrap, "orders-returned", 9, 3)) == 9
        else:
            assert (folder / "orders.html").exists()
