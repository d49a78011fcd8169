"""Programs of the docs that need more than a server; tests/house runs the rest.

The web service of docs/reference/sdk.md is run under uvicorn, and of the guide to retries what is
Python: compat-tests/rocketmq-java runs that page as a whole, where there is a JDK.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from bench.peers.ports import free_ports
from tests.gateway.remoting.client import Client as Reader
from tests.gateway.remoting.client import messages
from tests.gateway.server import ROOT, RunningServer, environment
from tests.house.markdown import blocks
from tests.house.snippets import GUIDES, run_in_guide
from tests.waiting import wait_until

from rockgate.protocol.remoting.message import Message as Stored
from rockgate.sdk import Message
from rockgate.sdk.blocking import BlockingProducer


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_web_service_sends_what_is_posted_and_reads_it(loop: str, tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "sdk.md"
    [block] = [each for each in blocks(page) if "app" in each.words]
    with RunningServer(tmp_path, rocketmq=True) as server:
        namesrv = "{}:{}".format(*server.address("namesrv"))
        with BlockingProducer(namesrv, group="setup") as producer:
            producer.send(Message("orders", b"makes the topic"))
        (tmp_path / "app.py").write_text(block.text.replace("127.0.0.1:9876", namesrv))
        [port] = free_ports(1)
        command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--loop", loop]
        with (
            (tmp_path / "uvicorn.log").open("w") as log,
            subprocess.Popen(
                command, cwd=tmp_path, env=environment(dict(os.environ)), stderr=log, stdout=log
            ) as web,
        ):
            try:
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as asker:
                    wait_until(lambda: is_up(asker), "uvicorn listens")
                    told = asker.post("/orders/o-1").raise_for_status().json()
                    wait_until(lambda: state(asker, "o-1") == "placed", "the consumer has it")
                    found = read(server, "orders")
                    server.kill()
                    assert asker.post("/orders/o-2").status_code == 503
            finally:
                web.terminate()
        assert web.returncode in (0, -15)
        assert "Traceback" not in (tmp_path / "uvicorn.log").read_text()
        assert [(m.message_id, m.keys) for m in found if m.keys] == [(told["message"], ("o-1",))]


def test_the_guide_to_retries_has_a_consumer_that_gives_up(tmp_path: Path) -> None:
    page = ROOT / GUIDES / "retry-and-dead-letters.md"
    first, *_ = (each for each in blocks(page) if "run" in each.words)
    [listener] = [each for each in blocks(page) if each.language == "python"]
    with RunningServer(tmp_path, rocketmq=True) as server:
        run_in_guide(first, tmp_path, server)
        printed = run_in_guide(listener, tmp_path, server)
        dead = replace(first, text="rockgate dlq list waiters")
        wait_until(lambda: " orders " in run_in_guide(dead, tmp_path, server), "a dead letter")
    said = sorted(printed.splitlines())
    assert said == [
        "a broken order, try 1",
        "a broken order, try 2",
        "a tea, try 1",
        "an espresso, try 1",
    ]


def is_up(asker: httpx.Client) -> bool:
    try:
        return asker.get("/openapi.json").status_code == 200
    except httpx.TransportError:
        return False


def state(asker: httpx.Client, order: str) -> str:
    found: dict[str, str] = asker.get(f"/orders/{order}").raise_for_status().json()
    return found["state"]


def read(server: RunningServer, topic: str) -> list[Stored]:
    reader = Reader(server.address("remoting"))
    try:
        pulled = (reader.pull(topic, 0, queue=queue) for queue in range(4))
        return [message for answer in pulled if answer.code == 0 for message in messages(answer)]
    finally:
        reader.socket.close()
