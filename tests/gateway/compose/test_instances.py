"""What a server is meant to have one of, it has one of: counted in a server that was started."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.app import Server
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.delay.visible_batch import VisibleBatches
from rockgate.gateway.kafka.fetch.partitions import PartitionReader
from rockgate.gateway.kafka.fetch.sessions import FetchSessions
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.gateway.net.address import Address
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.transcode.batches import BatchTranscoder
from rockgate.gateway.transcode.compressed_bodies import CompressedBodies
from rockgate.gateway.transcode.transcoder import Transcoder

ONE_OF: tuple[type, ...] = (
    *(BatchThreads, Durability, FetchSessions, CompressedBodies, PartitionReader, QueueSizes),
    *(SettingsCache, VisibleBatches, Transcoder, BatchTranscoder, PollRegistry, ColdReads),
)


async def started(folder: Path) -> None:
    config = gather().config
    free = Address.parse("127.0.0.1:0")
    config = replace(
        config,
        server=replace(config.server, data_dir=folder),
        kafka=replace(config.kafka, listen=free),
        remoting=replace(config.remoting, listen=free),
        namesrv=replace(config.namesrv, listen=free),
        http=replace(config.http, listen=free),
    )
    async with AsyncExitStack() as resources:
        await Server(config).start(resources)


def test_a_server_makes_one_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()

    def counted(kind: type) -> None:
        original = kind.__init__  # type: ignore[misc]  # of a class that is at hand, not of any

        def init(self: Any, *given: Any, **named: Any) -> None:
            made[kind.__name__] += 1
            original(self, *given, **named)

        monkeypatch.setattr(kind, "__init__", init)

    for kind in ONE_OF:
        counted(kind)
    asyncio.run(started(tmp_path))
    assert made == {kind.__name__: 1 for kind in ONE_OF}
