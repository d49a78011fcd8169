"""A stand-in for a part of the store: its interface is all that its users ask for."""

import asyncio
from dataclasses import dataclass, field

from rockgate.gateway.storage.durability import Durability
from rockgate.store.api.log import OnCommitted
from rockgate.store.config import StoreConfig


@dataclass
class Log:
    start: int = 0
    end: int = 10


@dataclass
class Commit:
    position: int = 0
    waiting: list[OnCommitted] = field(default_factory=list)

    def when_committed(self, position: int, callback: OnCommitted) -> None:
        self.waiting.append(callback)

    def advance(self, position: int) -> None:
        self.position = position
        for callback in self.waiting:
            callback(None)


@dataclass
class StandIn:
    config: StoreConfig = field(default_factory=lambda: StoreConfig(flush="sync"))
    log: Log = field(default_factory=Log)
    commit: Commit = field(default_factory=Commit)


async def test_an_answer_waits_for_a_log_that_is_no_file() -> None:
    store = StandIn()
    answer = Durability(store).after_changes("stored")
    assert isinstance(answer, asyncio.Future)
    await asyncio.sleep(0)
    assert not answer.done()
    store.commit.advance(store.log.end)
    assert await answer == "stored"
