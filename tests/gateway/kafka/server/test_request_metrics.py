import asyncio
from typing import Any

import pytest
from tests.gateway.kafka.admin import Admin
from tests.gateway.kafka.world import call

from rockgate.gateway.compose.kafka.services import Services
from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.handlers.fetch import Fetched
from rockgate.gateway.kafka.handlers.produce import Produced
from rockgate.gateway.kafka.request.handler import Answer, Peer, Row
from rockgate.gateway.kafka.server.accounting import Accounting
from rockgate.gateway.kafka.server.request_metrics import (
    LOOKED_AT_MAX,
    Traffic,
    counting,
    first_error,
    first_partition_error,
)
from rockgate.gateway.kafka.server.session import Promise
from rockgate.gateway.kafka.server.throttle_pause import with_throttle_time
from rockgate.gateway.storage.slow_appends import SlowAppends
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.connection import Exchange, RequestHeader
from rockgate.protocol.kafka.hot import produce as hot
from rockgate.protocol.kafka.hot.fetch import FetchedPartition, FetchedTopic
from rockgate.protocol.kafka.hot.produce import ProducedPartition, ProducedTopic
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatResponse
from rockgate.protocol.kafka.messages.list_groups import ListedGroup, ListGroupsResponse
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rockgate.protocol.kafka.schema import declaration_of, decode, encode
from rockgate.store.clock import ManualClock

PRODUCE, HEARTBEAT = int(ApiKey.PRODUCE), int(ApiKey.HEARTBEAT)


class Later:
    def __init__(self, answer: Answer) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answer = answer

    def answer(self) -> Answer:
        return self._answer


class Answering(Admin):
    """Dispatch that answers as a test says, and a clock that each look moves on by ten ms."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome: Answer | Promise = [b"answer"]
        self.now = 0.0
        self.stats = RequestStats()
        self.slow_appends = SlowAppends(ManualClock())
        self.accounting = Accounting(
            self,
            stats=self.stats,
            throttling=self.throttling,
            slow_appends=self.slow_appends,
            now=self.tick,
        )
        self.peer = call(0).peer

    def tick(self) -> float:
        self.now += 0.01
        return self.now

    def dispatch(self, exchange: Exchange, peer: Peer) -> Answer | Promise:
        return self.outcome

    def ask(self, key: int, version: int = 0, size: int = 100) -> Answer | Promise:
        header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="c")
        return self.accounting.dispatch(Exchange(header, memoryview(b""), size), self.peer)


def test_requests_are_counted_by_api_with_their_sizes_and_times() -> None:
    world = Answering()
    world.ask(HEARTBEAT)
    world.ask(HEARTBEAT, size=50)
    world.outcome = [b"ab", memoryview(b"cde")]
    world.ask(PRODUCE)
    beats, writes = world.stats.of(HEARTBEAT), world.stats.of(PRODUCE)
    assert (beats.count, beats.request_bytes, beats.answer_bytes) == (2, 150, 12)
    assert beats.seconds == pytest.approx(0.02)
    assert (writes.count, writes.answer_bytes) == (1, 5)


async def test_an_answer_that_comes_later_is_counted_when_it_comes() -> None:
    world = Answering()
    world.outcome = Later([b"late"])
    promise = world.ask(HEARTBEAT)
    assert not isinstance(promise, list)
    assert promise.future is world.outcome.future
    assert world.stats.apis == {}
    world.now += 5
    assert promise.answer() == [b"late"]
    assert world.stats.of(HEARTBEAT).seconds == pytest.approx(5.03)


def test_a_client_beyond_its_quota_is_told_so_and_its_session_too() -> None:
    world = Answering()
    world.quotas.put({(("client-id", "c"),): {"request_percentage": 1.0}})
    world.outcome = [encode(HeartbeatResponse(error_code=3), 1)]
    world.ask(HEARTBEAT, 1)
    for _ in range(20):
        answer = world.ask(HEARTBEAT, 1)
    assert isinstance(answer, list)
    heard = decode(HeartbeatResponse, 1, answer[0], memory_max=1 << 20)
    assert heard.throttle_time_ms == world.peer.throttle_ms == 1_000
    assert heard.error_code == 3


def test_who_gets_no_answer_has_to_wait_anyway() -> None:
    world = Answering()
    world.quotas.put({(("client-id", "c"),): {"producer_byte_rate": 1.0}})
    world.outcome = []
    assert world.ask(PRODUCE, 9, 20) == []
    assert world.peer.throttle_ms == 10_000


@pytest.mark.parametrize("version", range(3, 14))
def test_an_answer_to_produce_has_the_time_to_wait(version: int) -> None:
    response = APIS[ApiKey.PRODUCE].response
    answer = with_throttle_time(hot.encode_response(version, []), PRODUCE, version, 777)
    body = b"".join(answer)
    assert decode(response, version, body, memory_max=1 << 20) == response(throttle_time_ms=777)


def _with_throttle() -> list[tuple[ApiKey, int]]:
    return [
        (row.key, version)
        for row in HANDLERS
        if row.key not in (ApiKey.PRODUCE, ApiKey.API_VERSIONS)
        for version in range(row.versions.min, row.versions.max + 1)
        if any(
            spec.name == "throttle_time_ms" and version in spec.versions
            for spec in declaration_of(APIS[row.key].response).fields
        )
    ]


@pytest.mark.parametrize(("key", "version"), _with_throttle())
def test_every_answer_that_has_a_place_for_the_time_has_it(key: ApiKey, version: int) -> None:
    response = APIS[key].response
    answer = with_throttle_time([encode(response(), version)], int(key), version, 777)
    heard = decode(response, version, b"".join(answer), memory_max=1 << 20)
    assert heard.throttle_time_ms == 777
    heard.throttle_time_ms = 0
    assert encode(heard, version) == encode(response(), version)


def test_an_answer_without_such_a_place_stays_as_it_is() -> None:
    assert with_throttle_time([b"\x00\x01"], HEARTBEAT, 0, 777) == [b"\x00\x01"]


def test_errors_are_counted_as_answers_are_written() -> None:
    stats = RequestStats()
    rows = {row.key: row for row in counting(HANDLERS, stats, Traffic())}
    row = rows[ApiKey.HEARTBEAT]
    assert row.look is not None
    row.look(HeartbeatResponse(error_code=27))
    row.look(HeartbeatResponse())
    assert stats.of(HEARTBEAT).errors == {27: 1}


# The first error of a response


def commit(*codes: int) -> OffsetCommitResponse:
    partitions = [OffsetCommitResponsePartition(error_code=code) for code in codes]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(partitions=partitions)])


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (HeartbeatResponse(), 0),
        (HeartbeatResponse(error_code=25), 25),
        (commit(0, 0), 0),
        (commit(0, 22), 22),
        (commit(*[0] * LOOKED_AT_MAX, 22), 0),
        (ListGroupsResponse(groups=[ListedGroup(group_id="g")]), 0),
    ],
)
def test_the_first_error_of_a_response_is_found(response: object, code: int) -> None:
    assert first_error(response) == code


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (Produced([ProducedTopic("a", b"", [ProducedPartition(0, 0, 5)])]), 0),
        (Produced([ProducedTopic("a", b"", [ProducedPartition(0), ProducedPartition(1, 3)])]), 3),
        (Fetched([FetchedTopic("a", b"", [FetchedPartition(0)])]), 0),
        (Fetched([FetchedTopic("a", b"", [FetchedPartition(0, 6)])], 70), 6),
        (Fetched([], 70), 70),
    ],
)
def test_the_error_of_a_hot_answer_is_that_of_a_partition_or_its_own(
    response: object, code: int
) -> None:
    assert first_partition_error(response) == code


@pytest.mark.parametrize("row", HANDLERS, ids=lambda row: row.key.name)
def test_every_other_answer_can_be_looked_at(row: Row[Services]) -> None:
    assert first_error(APIS[row.key].response()) == 0
