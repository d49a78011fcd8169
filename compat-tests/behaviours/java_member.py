"""Apache's Java client in a process of its own, which joins a group that others are in, too."""

from __future__ import annotations

import asyncio
from pathlib import Path

from behaviours.bringing import java_program
from behaviours.running import Answering

FOLDER = Path(__file__).resolve().parents[1] / "rocketmq-java"


class Java:
    """The client, asked in lines (rocketmq-java/src/Mixing.java)."""

    def __init__(self, version: str, folder: Path) -> None:
        self.folder = folder
        """Its home."""
        java, *rest = java_program(FOLDER, version, "Program")
        flags = (
            "-Drocketmq.client.logUseSlf4j=true",
            f"-Duser.home={folder}",
            "-Drocketmq.client.rebalance.waitInterval=1000",
            "-Drocketmq.client.rebalance.lockInterval=1000",
        )
        self._program = Answering([java, *flags, *rest], folder / "java.log", folder)

    async def ask(self, *words: object) -> list[str]:
        """The words of its answer, which have commas between them."""
        _, said = await asyncio.to_thread(self._program.ask, " ".join(map(str, words)))
        assert not said.startswith("FAIL"), said
        return [word for word in said.removeprefix("ok").strip().split(",") if word]

    def end(self) -> None:
        self._program.end()
