"""docs/guide/retry-and-dead-letters.md: its consumer is compiled, and all of the page is run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from bench.peers.jars import pinned_version
from bench.peers.tools import find_java
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer
from tests.house.markdown import Block, blocks
from tests.house.snippets import JAVA, addressed, guides, missing_headers, run_in_guide
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
CLIENT = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')}"
DEAD = "%DLQ%kitchen"
pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]


@contextmanager
def running(block: Block, folder: Path, server: RunningServer) -> Iterator[Path]:
    """The page's program in a JVM of its own; the file has what it prints."""
    text = addressed(block.text, server)
    name = re.findall(r"public class (\w+)", text)[0]
    (folder / f"{name}.java").write_text(text)
    java, *flags, jars, _ = java_program(HERE, "v5", name)
    compiler = str(find_java().with_name("javac"))
    compiled = [compiler, "-cp", jars, "-d", str(folder), str(folder / f"{name}.java")]
    subprocess.run(compiled, check=True, timeout=120)
    # A group's retry topic is new to its consumer, which would otherwise find it after 20 s.
    brisk = "-Drocketmq.client.rebalance.waitInterval=1000"
    quiet = ("-Drocketmq.client.logUseSlf4j=true", f"-Duser.home={folder}")
    command = [java, brisk, *quiet, *flags, f"{folder}:{jars}", name]
    printed = folder / "printed"
    with printed.open("w") as out, subprocess.Popen(command, stdout=out, cwd=folder) as process:
        try:
            yield printed
        finally:
            process.kill()


@pytest.mark.parametrize("page", guides(JAVA), ids=str)
def test_everything_on_the_guide_runs(java: object, page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    levels = "remoting.delay_levels=1s 5s 1s 1s 1s"  # Retries begin with the third.
    with RunningServer(tmp_path, rocketmq=True, settings=[levels]) as server:
        broker = Client(server.address("remoting"))
        printed = []
        for block in blocks(page):
            if block.language == JAVA:
                try:
                    with running(block, folder, server) as lines:
                        wait_until(lambda: bool(messages(broker.pull(DEAD))), "the dead letter", 90)
                        printed.append(lines.read_text())
                except CannotRun as reason:
                    leave_out(reason)
            elif "run" in block.words:
                printed.append(run_in_guide(block, folder, server))
            elif "output" in block.words:
                assert missing_headers(block, "".join(printed)) == []
        broker.socket.close()
    told = "".join(printed)
    assert "a broken order, retry 2" in told
    assert "a tea, retry 0" in told
    assert re.search(r"3\ta tea\n2\ta broken order\n", told), told
