"""Apache RocketMQ's mqadmin, unmodified, as an operator types it.

One JVM runs all commands (rocketmq-tools/src/Commands.java), each through the tool's own entry
point.
"""

from __future__ import annotations

from pathlib import Path

from behaviours.bringing import entry, run
from behaviours.driver import SECONDS_MAX
from behaviours.running import Answering
from bench.peers import jars, rocketmq
from bench.peers.cached_directory import cached_directory
from bench.peers.tools import find_java

HERE = Path(__file__).resolve().parents[1] / "rocketmq-tools"
SOURCE = HERE / "src" / "Commands.java"


class MqAdmin(Answering):
    """The tool of a line of versions, pointed at a name server."""

    def __init__(self, namesrv: str, folder: Path, line: str = rocketmq.NAME, *more: str) -> None:
        """`more` are flags of the JVM."""
        self.namesrv = namesrv
        java = find_java()
        directory = jars.fetch(line)

        def fill(aside: Path) -> None:
            compiler = str(java.with_name("javac"))
            run([compiler, "-d", str(aside), "-cp", f"{directory}/*", str(SOURCE)], HERE)

        made = cached_directory(entry(f"{line}-tools", [SOURCE]), fill)
        # 4.9 insists on a file for its log, and would write it between what commands print.
        (folder / "conf").mkdir(exist_ok=True)
        quiet = rocketmq.OLD_LOGBACK.replace("WARN", "OFF")
        (folder / "conf" / "logback_tools.xml").write_text(quiet)
        flags = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-Drocketmq.client.logUseSlf4j=true")
        where = (f"-Drocketmq.home.dir={folder}", f"-Duser.home={folder}")
        classes = ("-cp", f"{made}:{directory}/*", "Commands")
        super().__init__([str(java), *flags, *more, *where, *classes], folder=folder)

    def __call__(self, command: str, *words: str) -> str:
        """What a command prints; a failure is printed too."""
        return self.run(self.namesrv, command, *words)

    def run(self, namesrv: str, command: str, *words: str, seconds: float = SECONDS_MAX) -> str:
        """The same on another name server; a command that does not end is interrupted."""
        line = (str(int(seconds)), command, *words, "-n", namesrv)
        printed, _ = self.ask("\t".join(line))
        return printed

    def commands(self) -> list[str]:
        """The names of all its commands, by its own help."""
        printed, _ = self.ask(str(int(SECONDS_MAX)))
        return [line.split()[0] for line in printed.splitlines() if line.startswith("   ")]


def rows(said: str, first: str) -> list[list[str]]:
    """The lines that begin with a word, in words."""
    return [line.split() for line in said.splitlines() if line.split()[:1] == [first]]
