"""The guides for Java: their consumers are compiled, and all of each page is run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from bench.peers.jars import pinned_version
from bench.peers.rocketmq import tool_command
from bench.peers.tools import find_java
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer
from tests.house.markdown import Block, blocks
from tests.house.snippets import JAVA, addressed, guides, missing_headers, run_in_guide
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
CLIENT = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')}"
DEAD = "%DLQ%kitchen"
MQADMIN = "mqadmin"
EXPECTED = {
    "retry-and-dead-letters": (
        r"a broken order, retry 2",
        r"a tea, retry 0",
        r"3\ta tea\n2\ta broken order\n",
    ),
    "pop": (
        r"set consume mode to .* success",
        r"a broken order, retry 0",
        r"a broken order, retry 1",
        r"a ristretto, retry 0",
    ),
}
"""What a guide's commands and programs print, by its name."""
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


def run_mqadmin(block: Block, folder: Path, server: RunningServer) -> str:
    """Run RocketMQ's own tool as a block says, line by line; return what it prints."""
    printed = ""
    for line in addressed(block.text, server).splitlines():
        program, *words = line.split()
        assert program == MQADMIN, line
        namesrv = "{}:{}".format(*server.address("namesrv"))
        command = tool_command(words, folder / MQADMIN, namesrv)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    return printed


def is_finished(page: Path, broker: Client, printed: Path) -> bool:
    """Whether a page's consumer has done what the page is about."""
    if page.stem == "pop":
        said = printed.read_text()
        return "a broken order, retry 1" in said and said.count("retry 0") == 4
    return bool(messages(broker.pull(DEAD)))


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
                        done = partial(is_finished, page, broker, lines)
                        wait_until(done, "what the page is about", 90)
                        printed.append(lines.read_text())
                except CannotRun as reason:
                    leave_out(reason)
            elif MQADMIN in block.words:
                printed.append(run_mqadmin(block, folder, server))
            elif "run" in block.words:
                printed.append(run_in_guide(block, folder, server))
            elif "output" in block.words:
                assert missing_headers(block, "".join(printed)) == []
        broker.socket.close()
    told = "".join(printed)
    for pattern in EXPECTED[page.stem]:
        assert re.search(pattern, told), f"{pattern}\n{told}"
