"""Runs peers manually.

    python -m bench.peers kafka start [--port 19092] [--dir DIR] [--set KEY=VALUE]…
    python -m bench.peers kafka status|stop [--dir DIR]
    python -m bench.peers kafka tool ProducerPerformance ARGUMENTS…
    python -m bench.peers rocketmq start [--port 20911] [--namesrv-port 19876] [--set KEY=VALUE]…
    python -m bench.peers rocketmq tool clusterList

Without --dir a peer's directory is in the cache, and its data survives restarts.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from bench.peers import jars, kafka, rocketmq
from bench.peers.daemon import Daemon
from bench.peers.errors import NotRunning, PeerError
from bench.peers.kafka import KafkaPeer
from bench.peers.rocketmq import RocketMQPeer

PORTS = {kafka.NAME: 19092, rocketmq.NAME: 20911}
NAMESRV_PORT = 19876
DAEMONS = {kafka.NAME: ("kafka",), rocketmq.NAME: ("broker", "namesrv")}
USAGE_STATUS = 2


def start(arguments: argparse.Namespace) -> None:
    """Start a peer and print its addresses."""
    settings = dict(pair.split("=", 1) for pair in arguments.set)
    if arguments.fresh and not _living(arguments):
        shutil.rmtree(arguments.dir, ignore_errors=True)
    if arguments.peer == kafka.NAME:
        peer = KafkaPeer(arguments.dir, port=arguments.port, settings=settings).start()
        print(f"ready kafka={peer.bootstrap} pid={peer.pid} seconds={peer.ready_seconds:.1f}")
        return
    pair = RocketMQPeer(
        arguments.dir,
        broker_port=arguments.port,
        namesrv_port=arguments.namesrv_port,
        settings=settings,
    ).start()
    print(
        f"ready namesrv={_text(pair.namesrv)} broker={_text(pair.broker)} "
        f"pid={pair.pid} seconds={pair.ready_seconds:.1f}"
    )


def stop(arguments: argparse.Namespace) -> None:
    """Stop the peer that was started in a directory."""
    for daemon in _living(arguments):
        pid = daemon.pid
        daemon.stop()
        print(f"stopped {daemon.name} pid={pid}")


def status(arguments: argparse.Namespace) -> None:
    """Print what is running; status 1 if nothing is."""
    living = _living(arguments)
    for daemon in living:
        print(f"{daemon.name} pid={daemon.pid} log={daemon.log_path}")
    if not living:
        raise NotRunning(f"{arguments.peer} does not run in {arguments.dir}")


def tool(arguments: argparse.Namespace) -> None:
    """Run one of the peer's own command-line tools."""
    words = arguments.arguments
    if not words:
        raise PeerError("which tool? For example: kafka tool TopicCommand --help")
    if arguments.peer == kafka.NAME:
        command = kafka.tool_command(words)
    else:
        running = arguments.dir / "broker.properties"
        namesrv = _property(running, "namesrvAddr") if running.exists() else None
        command = rocketmq.tool_command(words, arguments.dir, namesrv)
    sys.stdout.flush()
    os.execv(command[0], command)


def fetch(arguments: argparse.Namespace) -> None:
    """Download the jars and print their directory."""
    found = jars.fetch(arguments.peer)
    print(f"{len(list(found.glob('*.jar')))} jars in {found}")


def _living(arguments: argparse.Namespace) -> list[Daemon]:
    daemons = [Daemon(name, arguments.dir) for name in DAEMONS[arguments.peer]]
    return [daemon for daemon in daemons if daemon.pid is not None]


def _property(path: Path, key: str) -> str:
    pairs = dict(line.split("=", 1) for line in path.read_text().splitlines())
    return pairs[key]


def _text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def _pair(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return text


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    peers = found.add_subparsers(dest="peer", required=True)
    for peer, port in PORTS.items():
        commands = peers.add_parser(peer).add_subparsers(dest="command", required=True)
        for run in (start, stop, status, tool, fetch):
            command = commands.add_parser(run.__name__, help=run.__doc__)
            command.set_defaults(run=run)
            home = jars.cache_directory() / "run" / peer
            command.add_argument("--dir", type=Path, default=home, help="its directory")
            if run is start:
                command.add_argument("--port", type=int, default=port, help="0: a free one")
                command.add_argument("--set", action="append", type=_pair, default=[])
                command.add_argument("--fresh", action="store_true", help="forget its data first")
                if peer == rocketmq.NAME:
                    command.add_argument("--namesrv-port", type=int, default=NAMESRV_PORT)
            if run is tool:
                command.add_argument("arguments", nargs=argparse.REMAINDER)
    return found


def main() -> None:
    """Run one command; a failure is printed in one line, with status 1."""
    arguments = parser().parse_args()
    try:
        arguments.run(arguments)
    except PeerError as error:
        print(f"{arguments.peer}: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
