"""No request holds the loop, however much it names: every API at its largest, turn by turn.

What is measured is what the loop's thread computes between two turns of a task that only wants its
turn, so a busy machine makes nothing fail. The rows are those of the benchmark, on less.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from bench.requests import kafka, kafka_changes
from bench.requests.kafka import row as kafka_row
from bench.requests.world import (
    GROUP_OF_ALL,
    QUICK,
    TRANSACTION_OF_ALL,
    WIDE,
    Loaded,
    Request,
    Size,
)
from tests.gateway.kafka.admin import IDENTITY
from tests.gateway.kafka.authorization.granted import Refusals
from tests.gateway.kafka.world import KafkaWorld, call

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.compose.kafka.assembly import KafkaAssembly
from rockgate.gateway.compose.security import SecurityAssembly
from rockgate.gateway.kafka.authorization.permissions import Permissions
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.server.dispatch import Dispatcher
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.kafka.connection import ServerConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import alter_client_quotas as quotas
from rockgate.protocol.kafka.messages import alter_configs as configs
from rockgate.protocol.kafka.messages import create_partitions as growing
from rockgate.protocol.kafka.messages import create_topics as creating
from rockgate.protocol.kafka.messages import incremental_alter_configs as incremental
from rockgate.store.config import StoreConfig
from rockgate.store.progress.progress import Commit
from rockgate.store.state.topicchanges import NewTopic

SIZE = Size(topics=1_000, groups=1_500, transactions=10, partitions=1_500, items=60_000)
TURN_MS_MAX = 25.0
"""A slice is two milliseconds and what it changes; what is done in one piece takes 30 and more."""
ROUNDS = 3
ONCE = ("Create", "Delete", "EndTxn", "InitProducerId")
"""What finds nothing to do the second time, but on another server."""
STORE = StoreConfig(segment_bytes=64 << 20, populate_ahead_bytes=1 << 16, key_index=False)


class Server:
    """Every handler of the server over a store in memory, loaded."""

    def __init__(
        self,
        resources: AsyncExitStack,
        folder: Path,
        size: Size = SIZE,
        permissions: Permissions | None = None,
    ) -> None:
        self._permissions = permissions
        self._resources = resources
        self._folder = folder
        self._turns = Turns()
        resources.callback(self._turns.stop)
        world = KafkaWorld(STORE)
        config = gather().config
        config = replace(
            config,
            client_metrics=replace(config.client_metrics, enabled=True),
            server=replace(config.server, data_dir=folder),
            groups=replace(config.groups, initial_delay_ms=0),
        )
        assembly = KafkaAssembly(
            config=config,
            identity=IDENTITY,
            store=world.store,
            security=SecurityAssembly(
                config=replace(config.security, authorization="on"),
                folds=world.security,
                data_dir=folder,
                is_authenticating=False,
                clock=world.clock,
                resources=resources,
            ),
            folds=world.folds,
            poll_registry=world.poll_registry,
            durability=Durability(world.store),
            cold_reads=world.cold_reads,
            telemetry=Telemetry(),
            threads=BatchThreads(),
            stalls=Stalls(world.clock),
            permissions=permissions,
        )
        loop = asyncio.get_running_loop()
        throttling = Throttling(quotas=world.folds.quotas, config=config.quotas, clock=loop)
        services = assembly.services((), assembly.make_groups(resources), throttling)
        self._dispatcher = Dispatcher(assembly.rows(), services)
        self.loaded = Loaded(listeners={}, size=size)
        self._load(world, assembly)

    def _load(self, world: KafkaWorld, assembly: KafkaAssembly) -> None:
        loaded, store, size = self.loaded, world.store, self.loaded.size
        names = [f"topic-{number:05d}" for number in range(size.topics - 1)]
        news = [NewTopic(name=name, queue_count=1) for name in names]
        news.append(NewTopic(name=WIDE, queue_count=size.partitions))
        topics = [topic for new in news for topic in store.topics.create_many([new])]
        loaded.topics = [topic.name for topic in topics]
        loaded.topic_ids = [topic.id for topic in topics]
        loaded.groups = [f"group-{number:05d}" for number in range(size.groups - 1)]
        for name in loaded.groups:
            store.progress.commit(name, [Commit(topics[0].id, 0, 1)])
        loaded.groups.append(GROUP_OF_ALL)
        store.progress.commit(GROUP_OF_ALL, [Commit(topic.id, 0, 1) for topic in topics])
        loaded.transactions = [f"txn-{number}" for number in range(size.transactions)]
        coordinator = assembly.coordinator
        for name in loaded.transactions:
            producer = coordinator.init(name, 600_000, None)
            loaded.producers.append((producer.id, producer.epoch))
        first = ProducerIdAndEpoch(*loaded.producers[0])
        coordinator.add(TRANSACTION_OF_ALL, first, [(topic.id, 0) for topic in topics])

    async def again(self) -> Server:
        """Another one, as this was at first."""
        self._turns.stop()
        return Server(self._resources, self._folder, permissions=self._permissions)

    async def longest_turn_ms(self, request: Request) -> float:
        """What the loop's thread computed in the longest turn that a request took."""
        (frame,) = request.make(self.loaded)
        # From here on in a turn of its own.
        await asyncio.sleep(0)
        self._turns.longest = 0.0
        await self.answer(frame)
        return self._turns.longest * 1000

    async def answer(self, frame: bytes) -> None:
        """Have a request answered, and its answer forgotten."""
        (exchange,) = ServerConnection().receive_data(frame)
        outcome = self._dispatcher.dispatch(exchange, call(0).peer)
        if not isinstance(outcome, list):
            await asyncio.wait([outcome.future])
            # One that is refused as a whole, by a closed connection, is answered too.
            with contextlib.suppress(ProtocolError):
                outcome.answer()
        await asyncio.sleep(0)


class Turns:
    """Times the turns of the running loop by the clock of its thread."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._loop = cast(Any, asyncio.get_running_loop())
        self._run = self._loop._run_once
        self._loop._run_once = self._timed
        self._is_on = True

    def _timed(self) -> None:
        before = time.thread_time()
        self._run()
        self.longest = max(self.longest, time.thread_time() - before)

    def stop(self) -> None:
        """Time no more."""
        if self._is_on:
            self._is_on = False
            del self._loop._run_once


class Everyone:
    """Access for all, or for none."""

    generation = 1

    def __init__(self, *, is_allowed: bool) -> None:
        self._is_allowed = is_allowed

    def may(self, *asked: object) -> bool:
        return self._is_allowed

    may_on_any = may


PERMISSIONS = {
    "without authorization": None,
    "all allowed": Permissions(Everyone(is_allowed=True), Refusals(count_max=0)),
    "all refused": Permissions(Everyone(is_allowed=False), Refusals(count_max=0)),
}


@pytest.fixture(params=PERMISSIONS)
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    async with AsyncExitStack() as resources:
        made = Server(resources, tmp_path, permissions=PERMISSIONS[request.param])
        # A collection visits everything that this process ever imported, and would be measured too.
        gc.disable()
        yield made
        gc.enable()


# Large by their bytes alone is what streams have to do with.
ROWS = [
    row
    for row in (*kafka.REQUESTS, *kafka_changes.REQUESTS)
    # Many at once are for sessions to share out.
    if " MB" not in row.name and row.count == 1
]


async def test_no_request_holds_the_loop_however_much_it_names(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    over = {}
    for row in ROWS:
        rounds = ROUNDS
        longest = await server.longest_turn_ms(row)
        while longest > TURN_MS_MAX and (rounds := rounds - 1):
            if row.name.startswith(ONCE):
                server = await server.again()
            longest = min(longest, await server.longest_turn_ms(row))
        if longest > TURN_MS_MAX:
            over[row.name] = round(longest, 1)
    assert not over
    assert "request failed" not in caplog.text


REFUSED = [
    kafka_row(
        ApiKey.ALTER_CLIENT_QUOTAS,
        "refused",
        lambda _: quotas.AlterClientQuotasRequest(
            entries=[
                quotas.EntryData(
                    entity=[quotas.EntityData(entity_type="user", entity_name="u")],
                    ops=[quotas.OpData(key="no quota", value=1.0)],
                )
            ]
        ),
    ),
    kafka_row(
        ApiKey.ALTER_CONFIGS,
        "refused",
        lambda w: configs.AlterConfigsRequest(
            resources=[
                configs.AlterConfigsResource(
                    resource_type=2,
                    resource_name=w.topics[0],
                    configs=[configs.AlterableConfig(name="none", value="1")],
                )
            ]
        ),
    ),
    kafka_row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "refused",
        lambda w: incremental.IncrementalAlterConfigsRequest(
            resources=[
                incremental.AlterConfigsResource(
                    resource_type=2,
                    resource_name=w.topics[0],
                    configs=[
                        incremental.AlterableConfig(name="none", config_operation=0, value="1")
                    ],
                )
            ]
        ),
    ),
    kafka_row(
        ApiKey.CREATE_TOPICS,
        "refused",
        lambda w: creating.CreateTopicsRequest(
            topics=[
                creating.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                for name in (w.topics[0], "no name")
            ]
        ),
    ),
    kafka_row(
        ApiKey.CREATE_PARTITIONS,
        "refused",
        lambda w: growing.CreatePartitionsRequest(
            topics=[growing.CreatePartitionsTopic(name=w.topics[0], count=1)]
        ),
    ),
]


async def test_no_request_leaves_anything_to_be_collected(tmp_path: Path) -> None:
    """A stored error references the frame that stores it, and with it the whole request."""
    left = {}
    async with AsyncExitStack() as resources:
        server = Server(resources, tmp_path, QUICK)
        gc.collect()
        gc.freeze()
        resources.callback(gc.unfreeze)
        gc.disable()
        resources.callback(gc.enable)
        for row in (*REFUSED, *ROWS):
            (frame,) = row.make(server.loaded)
            await asyncio.sleep(0)
            gc.collect()
            await server.answer(frame)
            await asyncio.sleep(0)
            if count := gc.collect():
                left[row.name] = count
    assert not left
