"""Runs the blocks of a page as a reader would: each in its own shell or interpreter.

A guide is run as a whole: its blocks in their order, in one folder, against one server.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.house.markdown import Block, blocks, pages

if TYPE_CHECKING:
    from tests.gateway.server import RunningServer

# A tour of thirty commands, on a machine that is busy with other tests.
SECONDS_MAX = 240
RUNNERS = {
    "sh": ["bash", "-eu"],
    "bash": ["bash", "-eu"],
    # As a reader would run it: warnings of client libraries are not ours to fix.
    "python": [sys.executable],
}
DEFAULT_ADDRESSES = {
    "kafka": "127.0.0.1:9092",
    "remoting": "127.0.0.1:10911",
    "namesrv": "127.0.0.1:9876",
    "http": "127.0.0.1:8080",
}
GUIDES = Path("docs/guide")
# The marks of a guide's blocks, which decide how they are run.
BY_HAND, JAVA, SPARK, CLUSTER = "by-hand", "java", "spark", "cluster"
SECURED = "secured"
"""The mark of the block that sets a server up and starts it: the last line does that."""


def guides(needs: str = "") -> list[Path]:
    """The guides that need JAVA, SPARK or a RocketMQ CLUSTER to run, or those that need none."""
    return [page for page in pages() if page.parent == GUIDES and needs_of(page) == needs]


def needs_of(page: Path) -> str:
    """What the blocks of a guide need besides a server."""
    found = {
        need for need in (JAVA, SPARK, CLUSTER) for block in blocks(page) if need in kind(block)
    }
    assert len(found) <= 1, f"{page} needs {found}, and one test runs a page"
    return next(iter(found), "")


def kind(block: Block) -> tuple[str, ...]:
    """The language of a block and its marks."""
    return (block.language, *block.words)


def addressed(text: str, server: RunningServer) -> str:
    """A block's text with this server's addresses instead of the default ones."""
    for listener, default in DEFAULT_ADDRESSES.items():
        if default in text:
            host, port = server.address(listener)
            text = text.replace(default, f"{host}:{port}")
    return text


def run_block(
    block: Block, text: str, folder: Path, variables: Mapping[str, str] | None = None
) -> str:
    """Run a block in a folder, with our commands first on PATH; return its output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    result = subprocess.run(
        RUNNERS[block.language],
        input=text,
        cwd=folder,
        env={**os.environ, "PATH": path, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert result.returncode == 0, f"{block}\n{result.stdout}"
    return result.stdout


def run_in_guide(block: Block, folder: Path, server: RunningServer) -> str:
    """Run a block of a guide; commands without an address use this server."""
    addresses = {name: "{}:{}".format(*server.address(name)) for name in ("kafka", "remoting")}
    variables = {
        "ROCKGATE_BOOTSTRAP_SERVER": addresses["kafka"],
        "ROCKGATE_BROKER": addresses["remoting"],
    }
    return run_block(block, addressed(block.text, server), folder, variables)


def secured_server(block: Block, folder: Path) -> RunningServer:
    """The server that a block sets up in a folder and starts, on free ports."""
    from tests.gateway.server import SEGMENT_BYTES, RunningServer

    *set_up, start = block.text.strip().splitlines()
    places = [part for name in DEFAULT_ADDRESSES for part in (f"--{name}", _free_address())]
    for line in set_up:
        variables = {"ROCKGATE_STORE_SEGMENT_BYTES": str(SEGMENT_BYTES)}
        run_block(block, f"{line} {' '.join(places)}", folder, variables)
    prefix, _, flags = start.partition("rockgate serve ")
    assert not prefix and flags, f"{block} ends with rockgate serve"
    return RunningServer(folder, flags=[*flags.split(), *places], rocketmq=True)


def _free_address() -> str:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{held.getsockname()[1]}"


def missing_headers(block: Block, printed: str) -> list[str]:
    """The table headers in a block of output that commands no longer print."""
    lines = {" ".join(line.split()) for line in printed.splitlines()}
    tables = block.text.strip().split("\n\n")
    headers = [" ".join(table.splitlines()[0].split()) for table in tables]
    return [header for header in headers if header not in lines]
