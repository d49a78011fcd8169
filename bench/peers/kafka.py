"""Apache Kafka as a peer: one process that is broker and controller, on loopback.

Its settings are Kafka's defaults except where a single node needs others: internal topics have one
replica and few partitions, and new groups do not wait for more members. The JVM's flags are those
of Kafka's own start script.
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from bench.peers import jars
from bench.peers.answers import answers_api_versions
from bench.peers.daemon import START_SECONDS_MAX
from bench.peers.errors import NotReady
from bench.peers.peer import KafkaBroker
from bench.peers.ports import HOST, free_ports
from bench.peers.tools import find_java

NAME = "kafka"
CLUSTER_ID = "rockgate-bench-peer-kA"
"""Sixteen bytes in Kafka's base64."""
HEAP = "1g"
SERVER_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
TOOL_FLAGS = ("-Xmx512m", "-XX:TieredStopAtLevel=1")
TOOL_PACKAGE = "org.apache.kafka.tools"
FORMAT_SECONDS_MAX = 120

LOG4J = """\
status = ERROR
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{{ISO8601}} %p %c{{1}} %m%n
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
"""


def settings(
    directory: Path, port: int, controller_port: int, extra: Mapping[str, str]
) -> dict[str, str]:
    """The contents of server.properties."""
    found = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(directory / "data"),
        "group.initial.rebalance.delay.ms": "0",
    }
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        found[f"{topic}.num.partitions"] = "4"
        found[f"{topic}.replication.factor"] = "1"
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        found[f"{topic}.min.isr"] = "1"
    return {**found, **extra}


def properties(pairs: Mapping[str, str]) -> str:
    """Format pairs as a Java properties file."""
    return "".join(f"{key}={value}\n" for key, value in pairs.items())


class KafkaPeer(KafkaBroker):
    """A Kafka broker and its directory, which is retained by a stop."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        port: int = 0,
        controller_port: int = 0,
        settings: Mapping[str, str] | None = None,
        heap: str = HEAP,
        log_level: str = "WARN",
        cache: Path | None = None,
    ) -> None:
        super().__init__(NAME, directory, port=port)
        self._controller_port = controller_port
        self._settings = dict(settings or {})
        self._heap = heap
        self._log_level = log_level
        self._cache = cache

    # Lifecycle

    def start(self, seconds_max: float = START_SECONDS_MAX) -> Self:
        """Start it and wait until it responds; the first start formats its directory."""
        java, class_path = find_java(), _class_path(self._cache)
        self._port = self._port or free_ports(1)[0]
        self._controller_port = self._controller_port or free_ports(1)[0]
        self._write_configuration()
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(java, class_path)
        log4j = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}"
        self.daemon.start(
            [
                str(java),
                *(f"-Xms{self._heap}", f"-Xmx{self._heap}", *SERVER_FLAGS, log4j),
                *("-cp", class_path, "kafka.Kafka", str(self._configuration)),
            ],
            is_ready=lambda: answers_api_versions(self.address),
            seconds_max=seconds_max,
        )
        return self

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.daemon.kill()

    # Inspection

    @property
    def version(self) -> str:
        """The version of its jars."""
        return jars.version(NAME)

    # Private

    @property
    def _configuration(self) -> Path:
        return self.directory / "server.properties"

    def _write_configuration(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        pairs = settings(self.directory, self._port, self._controller_port, self._settings)
        self._configuration.write_text(properties(pairs))
        (self.directory / "log4j2.properties").write_text(LOG4J.format(level=self._log_level))

    def _format(self, java: Path, class_path: str) -> None:
        log4j = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}"
        done = subprocess.run(
            [
                *(str(java), *TOOL_FLAGS, log4j, "-cp", class_path),
                *("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID),
                *("--config", str(self._configuration)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FORMAT_SECONDS_MAX,
        )
        if done.returncode:
            raise NotReady(f"{NAME} could not format its directory:\n{done.stdout}")


def tool_command(arguments: Sequence[str], cache: Path | None = None) -> list[str]:
    """The command line of one of Kafka's own tools, by class: `ProducerPerformance …`."""
    tool, *rest = arguments
    name = tool if "." in tool else f"{TOOL_PACKAGE}.{tool}"
    return [str(find_java()), *TOOL_FLAGS, "-cp", _class_path(cache), name, *rest]


def _class_path(cache: Path | None) -> str:
    return str(jars.fetch(NAME, cache) / "*")
