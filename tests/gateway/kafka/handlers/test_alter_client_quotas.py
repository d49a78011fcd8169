from collections.abc import Sequence

import pytest
from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.alter_client_quotas import AlterClientQuotas
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)

Parts = Sequence[tuple[str, str | None]]
Ops = Sequence[tuple[str, float | None]]
PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
CLIENT = [("client-id", "c")]


class AlteringQuotas(Admin):
    async def alter(
        self, *entries: tuple[Parts, Ops], version: int = 1, dry: bool = False
    ) -> list[int]:
        request = AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[
                        EntityData(entity_type=type_, entity_name=name) for type_, name in parts
                    ],
                    ops=[
                        OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in ops
                    ],
                )
                for parts, ops in entries
            ],
            validate_only=dry,
        )
        handler = AlterClientQuotas(quotas=self.quotas, durability=self.durability)
        response = await seen(handler.handle(request, call(version)), version)
        for each in response.entries:
            assert bool(each.error_message) == bool(each.error_code)
        return [each.error_code for each in response.entries]


@pytest.mark.parametrize("version", [0, 1])
async def test_quotas_are_set_and_removed_one_by_one(version: int) -> None:
    world = AlteringQuotas()
    assert await world.alter((CLIENT, [(PRODUCE, 500.0), (FETCH, 600.0)]), version=version) == [0]
    assert await world.alter((CLIENT, [(PRODUCE, 700.0), (FETCH, None)]), version=version) == [0]
    assert dict(world.quotas.items()) == {(("client-id", "c"),): {PRODUCE: 700.0}}
    assert await world.alter((CLIENT, [(PRODUCE, None), ("unknown", None)])) == [0]
    assert len(world.quotas) == 0


async def test_each_entity_succeeds_or_fails_alone() -> None:
    world = AlteringQuotas()
    invalid = ErrorCode.INVALID_REQUEST
    codes = await world.alter(
        (CLIENT, [(PRODUCE, 500.0)]),
        ([("nobody", "x")], [(PRODUCE, 500.0)]),
        ([("user", None), ("client-id", "c")], [(PRODUCE, 600.0)]),
        ([("ip", "10.0.0.1")], [(PRODUCE, 600.0)]),
        ([("client-id", "d")], [(PRODUCE, 500.0), ("unknown", 500.0)]),
        ([("client-id", "e")], [(PRODUCE, 500.0), (PRODUCE, 600.0)]),
        ([("client-id", "f")], []),
    )
    assert codes == [0, invalid, 0, invalid, invalid, invalid, 0]
    assert dict(world.quotas.items()) == {
        (("client-id", "c"),): {PRODUCE: 500.0},
        (("client-id", "c"), ("user", None)): {PRODUCE: 600.0},
    }


async def test_an_entity_that_is_named_twice_stays_as_it_is() -> None:
    world = AlteringQuotas()
    both = (CLIENT, [(PRODUCE, 500.0)]), (CLIENT, [(PRODUCE, 600.0)])
    assert await world.alter(*both) == [ErrorCode.INVALID_REQUEST]
    assert len(world.quotas) == 0
    user = [("user", "u"), ("client-id", "c")]
    codes = await world.alter((user, [(PRODUCE, 500.0)]), (user[::-1], [(PRODUCE, 600.0)]))
    assert codes == [0, ErrorCode.INVALID_REQUEST]


async def test_only_to_validate_changes_nothing() -> None:
    world = AlteringQuotas()
    wrong = ([("client-id", "")], [(PRODUCE, 500.0)])
    codes = await world.alter((CLIENT, [(PRODUCE, 500.0)]), wrong, dry=True)
    assert codes == [0, ErrorCode.INVALID_REQUEST]
    assert len(world.quotas) == 0


async def test_a_refusal_names_every_entity() -> None:
    world = AlteringQuotas()
    handler = AlterClientQuotas(quotas=world.quotas, durability=world.durability)
    request = AlterClientQuotasRequest(entries=[EntryData(entity=[], ops=[])])
    response = await seen(handler.refuse(request, ErrorCode.KAFKA_STORAGE_ERROR), 1)
    assert [each.error_code for each in response.entries] == [ErrorCode.KAFKA_STORAGE_ERROR]
