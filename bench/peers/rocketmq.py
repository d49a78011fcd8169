"""Apache RocketMQ as a peer: a name server and one broker, each a process, on loopback.

Its settings are RocketMQ's defaults except where a small machine needs others: files are smaller,
so that a new broker does not preallocate gigabytes, and everything listens on loopback only.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.peers import jars
from bench.peers.answers import answers_broker, answers_namesrv
from bench.peers.daemon import START_SECONDS_MAX, Daemon
from bench.peers.errors import NotReady
from bench.peers.kafka import properties
from bench.peers.peer import Peer
from bench.peers.ports import HOST, free_port_with, free_ports
from bench.peers.tools import find_java

NAME = "rocketmq"
OLD = "rocketmq-4"
"""The 4.x line, which is still widely used."""
NAMESRV_HEAP = "128m"
BROKER_HEAP = "768m"
MASTER_HEAP = "512m"
# The broker opens a port for priority requests two below its own, and one for replicas above it.
URGENT_STEP, REPLICA_STEP = -2, 1
FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:-OmitStackTraceInFastThrow",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
)
NAMESRV_CLASS = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER_CLASS = "org.apache.rocketmq.broker.BrokerStartup"
ADMIN_CLASS = "org.apache.rocketmq.tools.command.MQAdminStartup"

# First on the class path, it replaces the configuration in the jars with its thirty log files.
LOGBACK = """\
<configuration>
  <appender name="out" class="org.apache.rocketmq.logging.ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{yyyy-MM-dd HH:mm:ss.SSS} %p %t %logger{0} %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


# 4.9 requires it in the folder `conf` of its home, one for each program.
OLD_LOGBACK = LOGBACK.replace("org.apache.rocketmq.logging.", "")


def namesrv_settings(directory: Path, port: int) -> dict[str, str]:
    """The contents of namesrv.properties."""
    return {
        "listenPort": str(port),
        "bindAddress": HOST,
        "kvConfigPath": str(directory / "namesrv" / "kvConfig.json"),
        "configStorePath": str(directory / "namesrv" / "namesrv.properties"),
    }


def broker_settings(
    directory: Path, port: int, namesrv_port: int, extra: Mapping[str, str]
) -> dict[str, str]:
    """The contents of broker.properties."""
    return {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "broker-a",
        "brokerId": "0",
        "brokerRole": "ASYNC_MASTER",
        "flushDiskType": "ASYNC_FLUSH",
        "brokerIP1": HOST,
        "brokerIP2": HOST,
        "bindAddress": HOST,
        "listenPort": str(port),
        "haListenPort": str(port + REPLICA_STEP),
        "namesrvAddr": f"{HOST}:{namesrv_port}",
        "storePathRootDir": str(directory / "data"),
        "storePathCommitLog": str(directory / "data" / "commitlog"),
        "mappedFileSizeCommitLog": str(64 << 20),
        "mappedFileSizeConsumeQueue": "600000",
        "mappedFileSizeTimerLog": str(4 << 20),
        "maxIndexNum": "500000",
        "maxHashSlotNum": "100000",
        "diskMaxUsedSpaceRatio": "95",
        "timerPrecisionMs": "100",
        "enablePropertyFilter": "true",
        "recallMessageEnable": "true",
        "traceTopicEnable": "true",
        "transactionCheckInterval": "5000",
        "transactionTimeOut": "6000",
        "defaultTopicQueueNums": "4",
        **extra,
    }


class RocketMQPeer(Peer):
    """A RocketMQ cluster of one broker and its directory, which is retained by a stop."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        namesrv_port: int = 0,
        broker_port: int = 0,
        settings: Mapping[str, str] | None = None,
        namesrv_heap: str = NAMESRV_HEAP,
        broker_heap: str = BROKER_HEAP,
        cache: Path | None = None,
        line: str = NAME,
    ) -> None:
        """`line` is NAME or OLD: the pom that pins its version."""
        super().__init__(line, directory)
        self._line = line
        self.namesrv_daemon = Daemon("namesrv", self.directory)
        self.broker_daemon = Daemon("broker", self.directory)
        self._namesrv_port = namesrv_port
        self._broker_port = broker_port
        self._settings = dict(settings or {})
        self._namesrv_heap = namesrv_heap
        self._broker_heap = broker_heap
        self._cache = cache

    # Lifecycle

    def start(self, seconds_max: float = START_SECONDS_MAX) -> Self:
        """Start the name server, then the broker, and wait until clients can find it."""
        self._namesrv_port = self._namesrv_port or free_ports(1)[0]
        self._broker_port = self._broker_port or free_port_with((URGENT_STEP, REPLICA_STEP))
        self._write_configuration()
        self.namesrv_daemon.start(
            self._command(NAMESRV_CLASS, "namesrv", self._namesrv_heap),
            is_ready=lambda: answers_namesrv(self.namesrv),
            seconds_max=seconds_max,
        )
        try:
            self.restart_broker(seconds_max)
        except BaseException:
            self.namesrv_daemon.stop()
            raise
        return self

    def restart_broker(self, seconds_max: float = START_SECONDS_MAX) -> None:
        """Start the broker, which does not run, and wait until clients can find it."""
        self.broker_daemon.start(
            self._command(BROKER_CLASS, "broker", self._broker_heap),
            is_ready=lambda: answers_broker(self.broker, self.namesrv),
            seconds_max=seconds_max,
        )

    def stop(self) -> None:
        """Stop broker and name server cleanly."""
        self.broker_daemon.stop()
        self.namesrv_daemon.stop()

    # Inspection

    @property
    def version(self) -> str:
        """The version of its jars."""
        return jars.version(self._line)

    @property
    def namesrv(self) -> tuple[str, int]:
        """Host and port of the name server, for clients."""
        return HOST, self._namesrv_port

    @property
    def broker(self) -> tuple[str, int]:
        """Host and port of the broker."""
        return HOST, self._broker_port

    @property
    def pid(self) -> int:
        """The broker's pid, while it is running."""
        pid = self.broker_daemon.pid
        if pid is None:
            raise NotReady(f"the broker does not run:\n{self.broker_daemon.log_tail()}")
        return pid

    @property
    def ready_seconds(self) -> float:
        """From the start of the first process until clients can find the broker."""
        return self.namesrv_daemon.ready_seconds + self.broker_daemon.ready_seconds

    # Private

    def _write_configuration(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        for role, pairs in (
            ("namesrv", namesrv_settings(self.directory, self._namesrv_port)),
            (
                "broker",
                broker_settings(
                    self.directory, self._broker_port, self._namesrv_port, self._settings
                ),
            ),
        ):
            (self.directory / f"{role}.properties").write_text(properties(pairs))

    def _command(self, name: str, role: str, heap: str) -> list[str]:
        settings = self.directory / f"{role}.properties"
        return server_command(name, settings, heap, self._cache, self._line)


def server_command(
    name: str, settings: Path, heap: str, cache: Path | None = None, line: str = NAME
) -> list[str]:
    """The command line of a name server or a broker with a file of settings, by its class."""
    directory = settings.parent
    return [
        *(str(find_java()), *FLAGS, f"-Xms{heap}", f"-Xmx{heap}", *_home_flags(directory)),
        *("-cp", _class_path(directory, cache, line), name, "-c", str(settings)),
    ]


def tool_command(
    arguments: Sequence[str],
    directory: Path,
    namesrv: str | None,
    cache: Path | None = None,
    line: str = NAME,
) -> list[str]:
    """The command line of mqadmin: `clusterList`, `updateTopic …`."""
    names = ["-n", namesrv] if namesrv else []
    return [
        *(str(find_java()), *FLAGS, *_home_flags(directory)),
        *("-cp", _class_path(directory, cache, line), ADMIN_CLASS, *arguments, *names),
    ]


def _home_flags(directory: Path) -> tuple[str, str]:
    # Nothing starts without the first; the tools' logs and offsets are below the second.
    return f"-Drocketmq.home.dir={directory}", f"-Duser.home={directory}"


def _class_path(directory: Path, cache: Path | None, line: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "rmq.logback.xml").write_text(LOGBACK)
    if line == OLD:
        (directory / "conf").mkdir(exist_ok=True)
        for program in ("namesrv", "broker", "tools"):
            (directory / "conf" / f"logback_{program}.xml").write_text(OLD_LOGBACK)
    return f"{directory}:{jars.fetch(line, cache) / '*'}"


class RocketMQMaster:
    """A further broker of a peer's cluster, which has to run: a master, if the settings do not
    say that it is a slave."""

    def __init__(
        self,
        peer: RocketMQPeer,
        name: str,
        *,
        settings: Mapping[str, str] | None = None,
        heap: str = MASTER_HEAP,
        line: str = NAME,
    ) -> None:
        self._peer = peer
        self._line = line
        self.name = name
        self._directory = peer.directory / name
        self.daemon = Daemon("broker", self._directory)
        self._settings = dict(settings or {})
        self._heap = heap
        self._port = 0

    @property
    def broker(self) -> tuple[str, int]:
        """Host and port of the broker."""
        return HOST, self._port

    def start(self, seconds_max: float = START_SECONDS_MAX) -> Self:
        """Start it and wait until clients can find it; after a stop it has the same port."""
        self._port = self._port or free_port_with((URGENT_STEP, REPLICA_STEP))
        self._directory.mkdir(parents=True, exist_ok=True)
        settings = {"brokerName": self.name, **self._settings}
        path = self._directory / "broker.properties"
        _, namesrv_port = self._peer.namesrv
        pairs = broker_settings(self._directory, self._port, namesrv_port, settings)
        path.write_text(properties(pairs))
        self.daemon.start(
            server_command(BROKER_CLASS, path, self._heap, line=self._line),
            is_ready=lambda: answers_broker(self.broker, self._peer.namesrv),
            seconds_max=seconds_max,
        )
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.daemon.stop()
