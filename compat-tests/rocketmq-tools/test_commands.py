"""Every command of mqadmin 5.5.0 and 4.9.7, on the server and on the broker of its version.

commands.toml is the table. A process of the tool for each side runs all of it; a Java consumer of
the same version lives on each.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from behaviours import command_table
from behaviours.bringing import CannotRun, leave_out
from behaviours.command_table import Row, Side
from behaviours.java_member import Java
from behaviours.mqadmin import MqAdmin
from behaviours.recording import VARIABLE
from behaviours.rocketmq_brokers import Broker, apache_broker, rockgate_broker, stores_users
from bench.peers import PeerError, jars, rocketmq
from tests.gateway.remoting.client import Client
from tests.waiting import wait_until

CLIENT = f"rocketmq-tools {jars.version(rocketmq.NAME)}"
LINES = {"5": rocketmq.NAME, "4": rocketmq.OLD}
QUEUE_COUNT = 4
MESSAGES = 8
UNIQUE = "7F000001000018B4AAC20000000000"
TOPICS = [{"topicName": "listed", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}]
GROUPS = [{"groupName": "listed-group", "retryMaxTimes": 5}]

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(900)]


class Runs:
    """Both sides, once all commands of a version were run on them.

    At the end the live consumers are reset to the beginning, and read everything again: by 220 from
    the broker of 4.9, by the answers to their pulls from that of 5.5 and from ours.
    """

    def __init__(self, line: str, java: Java, folder: Path) -> None:
        self.version = jars.version(LINES[line])
        self.rows = command_table.load(line)
        self.commands: list[str] = []
        self._line = LINES[line]
        self._java = java
        self._folder = folder
        self._clients: list[Client] = []

    def run(self, theirs: Broker, ours: Broker) -> None:
        """Prepare both, and run the table on both at once."""
        self.theirs = self._prepared(theirs, "broker-a")
        self.ours = self._prepared(ours, "rockgate")
        with ThreadPoolExecutor(2) as both:
            list(both.map(self._run, (self.theirs, self.ours)))
        for side in (self.theirs, self.ours):
            wait_until(lambda side=side: self._has_read_again(side), "a reset consumer reads again")
        for client in self._clients:
            client.socket.close()

    def _run(self, side: Side) -> None:
        """Run all commands in one process: clients of the tool take seconds to shut down."""
        folder = Path(side.values["folder"])
        tool = MqAdmin(side.values["namesrv"], folder, self._line)
        self.commands = tool.commands()
        for row in self.rows:
            side.printed.append(printed_by(tool, row, side))
        live = side.values["live"]
        tool.run(side.values["namesrv"], "resetOffsetByTime", *f"-g {live} -t orders -s 0".split())
        tool.end()

    def _has_read_again(self, side: Side) -> bool:
        """Whether the live consumer was given every message once more after a reset."""
        (count,) = asyncio.run(self._java.ask("mix-count", side.values["live"]))
        return int(count) >= 2 * MESSAGES

    def faults(self, at: int) -> list[str]:
        """What is not as a row says."""
        return command_table.faults(self.rows[at], self.theirs, self.ours, at)

    def _prepared(self, broker: Broker, name: str) -> Side:
        """Eight messages, a producer, and a consumer that has read and committed all of them."""
        client = Client(broker.address)
        self._clients.append(client)
        broker.make_topic("orders", QUEUE_COUNT)
        for number in range(MESSAGES):
            named = {"KEYS": f"k{number}", "UNIQ_KEY": f"{UNIQUE}{number:02X}", "TAGS": "A"}
            body, queue = b"order %d" % number, number % QUEUE_COUNT
            assert client.publish("orders", body, queue=queue, properties=named).code == 0
        assert client.heartbeat("a-client", "").code == 0
        live = f"live-{name}"
        asyncio.run(self._java.ask("mix-join", broker.namesrv, "orders", live))
        (member,) = asyncio.run(self._java.ask("mix-id", live))

        def is_committed() -> bool:
            asked = {"topic": "orders", "consumerGroup": live, "setZeroIfNotFound": "false"}
            found = [client.ask(14, {**asked, "queueId": each}) for each in range(QUEUE_COUNT)]
            return all(each.fields.get("offset") == "2" for each in found)

        wait_until(is_committed, f"{live} has read and committed everything")
        folder = self._folder / name
        folder.mkdir()
        (folder / "topics.json").write_text(json.dumps(TOPICS))
        (folder / "groups.json").write_text(json.dumps(GROUPS))
        return Side(
            values={
                "cluster": "DefaultCluster",
                "name": name,
                "address": "{}:{}".format(*broker.address),
                "namesrv": broker.namesrv,
                "live": live,
                "client": member,
                "unique": UNIQUE,
                "folder": str(folder),
            }
        )


def printed_by(tool: MqAdmin, row: Row, side: Side) -> str:
    """What a command prints, with the file that it writes."""
    words = row.words(side.values)
    printed = tool.run(side.values["namesrv"], *words, seconds=row.seconds)
    if row.reads:
        file = Path(side.values["folder"]) / row.reads
        printed += file.read_text() if file.exists() else f"no {row.reads}"
    if row.keep:
        name, pattern = row.keep
        found = re.search(pattern, printed)
        side.values[name] = found[1] if found else f"no-{name}"
    return printed


@pytest.fixture(scope="module", params=list(LINES))
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    line = request.param
    folder = tmp_path_factory.mktemp("commands")
    for name in ("server", "java", "broker"):
        (folder / name).mkdir()
    settings = stores_users(LINES[line], folder / "broker")
    with (
        apache_broker(LINES[line], folder=folder / "broker", **settings) as theirs,
        rockgate_broker(folder / "server") as ours,
    ):
        try:
            java = Java(f"v{line}", folder / "java")
            found = Runs(line, java, folder)
            found.run(theirs, ours)
        except (CannotRun, PeerError) as reason:
            leave_out(CannotRun(str(reason)))
            raise
        java.end()
    if os.environ.get(VARIABLE):
        outcomes = [(row, found.faults(at)) for at, row in enumerate(found.rows)]
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        command_table.record(found.version, outcomes, today)
    yield found


@pytest.mark.feature("every command of 5.5.0 and 4.9.7 is in the table", "mqadmin")
def test_the_table_has_every_command_of_the_tool(runs: Runs) -> None:
    assert {row.command for row in runs.rows} == set(runs.commands)


@pytest.mark.feature("every command has the outcome of the table", "mqadmin")
def test_every_command_does_what_the_table_says(runs: Runs) -> None:
    told = [
        f"{row.run}: {'; '.join(found)}\n--- the broker\n{brief(runs.theirs, at)}\n"
        f"--- rockgate\n{brief(runs.ours, at)}"
        for at, row in enumerate(runs.rows)
        if (found := runs.faults(at))
    ]
    assert not told, "\n\n".join(told)


def brief(side: Side, at: int) -> str:
    """What was printed, without the lines of stack traces."""
    lines = side.printed[at].strip().splitlines()
    return "\n".join(line[:300] for line in lines if not re.match(r"\s+at |\s+\.\.\. ", line))[
        -1500:
    ]
