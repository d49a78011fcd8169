import pytest
from tests.gateway.kafka.admin import Admin
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.quotas import throttling
from rockgate.gateway.kafka.quotas.entities import Entity
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey

PRODUCE, FETCH, METADATA = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA
CLIENT: Entity = (("client-id", "c"),)
DEFAULT: Entity = (("client-id", None),)


class Charging(Admin):
    def set(self, entity: Entity, **quotas: float) -> "Charging":
        self.quotas.put({entity: quotas})
        return self

    def charge(
        self,
        key: ApiKey,
        client: str | None = "c",
        *,
        request: int = 0,
        answer: int = 0,
        seconds: float = 0.0,
    ) -> int:
        return self.throttling.charge(
            int(key),
            client,
            call(0).peer,
            request_size=request,
            answer_size=answer,
            loop_seconds=seconds,
        )


def test_without_a_quota_nothing_is_looked_at() -> None:
    world = Charging()
    assert not world.throttling.is_on
    world.set(CLIENT, producer_byte_rate=1.0)
    assert world.throttling.is_on
    world.set(CLIENT)
    assert not world.throttling.is_on


def test_bytes_of_produce_and_fetch_are_measured_each_for_itself() -> None:
    world = Charging().set(CLIENT, producer_byte_rate=1_000.0, consumer_byte_rate=500.0)
    assert world.charge(PRODUCE, request=10_000, answer=10**9) == 0
    assert world.charge(PRODUCE, request=1_000) == 1_000
    assert world.charge(FETCH, request=10**9, answer=5_000) == 0
    assert world.charge(FETCH, answer=500) == 1_000
    assert world.charge(METADATA, request=10**9, answer=10**9) == 0
    assert world.charge(PRODUCE, "other", request=10**9) == 0
    told = world.throttling.throttled["producer_byte_rate"]
    assert (told.count, told.total_ms) == (1, 1_000)


def test_time_makes_it_good() -> None:
    world = Charging().set(CLIENT, producer_byte_rate=1_000.0)
    assert world.charge(PRODUCE, request=15_000) == 5_000
    # As in Kafka it is the windows that must pass, and not only the reported throttle time.
    world.hand.advance(5)
    assert world.charge(PRODUCE, request=0) == 5_000
    world.hand.advance(6)
    assert world.charge(PRODUCE, request=9_000) == 0


def test_the_loop_s_time_is_measured_and_never_waited_for_longer_than_a_window() -> None:
    world = Charging().set(CLIENT, request_percentage=10.0)
    assert world.charge(METADATA, seconds=1.0) == 0
    assert world.charge(METADATA, seconds=0.05) == 500
    assert world.charge(METADATA, seconds=5.0) == 1_000


def test_clients_share_what_they_share() -> None:
    world = Charging().set((("user", "ANONYMOUS"),), producer_byte_rate=1_000.0)
    assert world.charge(PRODUCE, "a", request=10_000) == 0
    assert world.charge(PRODUCE, "b", request=1_000) == 1_000
    world = Charging().set(DEFAULT, producer_byte_rate=1_000.0)
    assert world.charge(PRODUCE, "a", request=10_000) == 0
    assert world.charge(PRODUCE, "b", request=1_000) == 0
    assert world.charge(PRODUCE, None, request=1_000) == 0


def test_a_change_holds_at_once_and_what_came_is_remembered() -> None:
    world = Charging().set(CLIENT, producer_byte_rate=1_000.0)
    assert world.charge(PRODUCE, request=10_000) == 0
    world.set(CLIENT, producer_byte_rate=500.0)
    assert world.charge(PRODUCE, request=0) == 10_000
    world.set(CLIENT, producer_byte_rate=5_000.0)
    assert world.charge(PRODUCE, request=0) == 0


def test_one_fetch_brings_no_more_than_the_windows_allow() -> None:
    world = Charging().set(CLIENT, consumer_byte_rate=100.0)
    mine = Call(12, "c", call(12).peer)
    assert world.throttling.fetch_bytes_max(mine, 1 << 20) == 1_000
    assert world.throttling.fetch_bytes_max(mine, 10) == 10
    assert world.throttling.fetch_bytes_max(Call(12, "x", mine.peer), 1 << 20) == 1 << 20


def test_partitions_beyond_the_quota_are_refused_or_waited_for() -> None:
    world = Charging().set(DEFAULT, controller_mutation_rate=1.0)
    strict, old = call(7), call(2)
    world.throttling.take_partitions(strict, 21, is_strict=True)
    assert strict.peer.throttle_ms == 0
    with pytest.raises(RequestError) as caught:
        world.throttling.take_partitions(strict, 1, is_strict=True)
    assert caught.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert strict.peer.throttle_ms == 10_000
    world.throttling.take_partitions(old, 5, is_strict=False)
    assert old.peer.throttle_ms == 15_000
    world.hand.advance(15)
    world.throttling.take_partitions(strict, 1, is_strict=True)


def test_connections_from_an_address_are_counted() -> None:
    world = Charging().set((("ip", "10.0.0.1"),), connection_creation_rate=1.0)
    for _ in range(10):
        assert world.throttling.may_connect("10.0.0.1")
    assert not world.throttling.may_connect("10.0.0.1")
    assert world.throttling.may_connect("10.0.0.2")
    assert world.throttling.throttled["connection_creation_rate"].count == 1
    world.hand.advance(11)
    assert world.throttling.may_connect("10.0.0.1")


def test_those_who_went_quiet_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "_SWEEP_MIN", 10)
    monkeypatch.setattr(throttling, "_CLIENTS_MAX", 10)
    world = Charging()
    world.throttling._sweep_at = 10
    world.set(DEFAULT, producer_byte_rate=1_000.0, controller_mutation_rate=1.0)
    for number in range(1_000):
        world.charge(PRODUCE, f"client-{number}", request=20_000)
        mine = Call(7, f"client-{number}", call(7).peer)
        world.throttling.take_partitions(mine, 1, is_strict=True)
        world.hand.advance(1)
    assert len(world.throttling._rates) + len(world.throttling._buckets) < 60
    assert len(world.throttling._clients) <= 10
    # Who has been here lately is remembered.
    assert world.charge(PRODUCE, "client-999", request=0) > 0


def test_no_one_waits_longer_than_the_windows_remember() -> None:
    world = Charging().set(CLIENT, producer_byte_rate=1.0)
    assert world.charge(PRODUCE, request=10**12) == 11_000
    told = world.throttling.throttled["producer_byte_rate"]
    assert (told.count, told.total_ms) == (1, 11_000)
