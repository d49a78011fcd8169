from collections.abc import Sequence

import pytest
from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.describe_client_quotas import DescribeClientQuotas
from rockgate.gateway.kafka.quotas.entities import Entity
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

EXACT, DEFAULT, ANY = range(3)
Components = Sequence[tuple[str, int, str | None]]
C1: Entity = (("client-id", "c1"),)
C_ANY: Entity = (("client-id", None),)
U1: Entity = (("user", "u1"),)
U1_C1: Entity = (("client-id", "c1"), ("user", "u1"))
U1_ANY: Entity = (("client-id", None), ("user", "u1"))
ADDRESS: Entity = (("ip", "10.0.0.1"),)
ALL = {C1, C_ANY, U1, U1_C1, U1_ANY, ADDRESS}


async def ask(
    components: Components, strict: bool = False, version: int = 1
) -> DescribeClientQuotasResponse:
    admin = Admin()
    admin.quotas.put({entity: {"b": 2.5, "a": 1.0} for entity in ALL})
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=type_, match_type=how, match=match)
            for type_, how, match in components
        ],
        strict=strict,
    )
    handler = DescribeClientQuotas(admin.quotas)
    response: DescribeClientQuotasResponse = await seen(
        handler.handle(request, call(version)), version
    )
    return response


async def found(components: Components, strict: bool = False, version: int = 1) -> set[Entity]:
    response = await ask(components, strict, version)
    assert (response.error_code, response.error_message) == (0, None)
    entities = set()
    for entry in response.entries or ():
        assert [(each.key, each.value) for each in entry.values] == [("a", 1.0), ("b", 2.5)]  # type: ignore[union-attr] # decoded
        entities.add(tuple((part.entity_type, part.entity_name) for part in entry.entity))  # type: ignore[union-attr] # decoded
    return entities


@pytest.mark.parametrize("version", [0, 1])
async def test_without_components_everything_is_described(version: int) -> None:
    assert await found([], version=version) == ALL
    assert await found([], strict=True, version=version) == set()


@pytest.mark.parametrize(
    ("components", "loose", "strict"),
    [
        ([("client-id", EXACT, "c1")], {C1, U1_C1}, {C1}),
        ([("client-id", DEFAULT, None)], {C_ANY, U1_ANY}, {C_ANY}),
        ([("client-id", ANY, None)], {C1, C_ANY, U1_C1, U1_ANY}, {C1, C_ANY}),
        ([("user", ANY, None)], {U1, U1_C1, U1_ANY}, {U1}),
        ([("user", DEFAULT, None)], set(), set()),
        ([("user", EXACT, "u1"), ("client-id", ANY, None)], {U1_C1, U1_ANY}, {U1_C1, U1_ANY}),
        ([("ip", ANY, None)], {ADDRESS}, {ADDRESS}),
        ([("ip", EXACT, "10.0.0.2")], set(), set()),
    ],
)
async def test_components_find_what_they_match(
    components: Components, loose: set[Entity], strict: set[Entity]
) -> None:
    assert await found(components) == loose
    assert await found(components, strict=True) == strict


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("nobody", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("client-id", 9, None)], ErrorCode.INVALID_REQUEST),
        ([("client-id", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("client-id", DEFAULT, "x")], ErrorCode.INVALID_REQUEST),
        ([("client-id", ANY, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, None), ("user", EXACT, "u")], ErrorCode.INVALID_REQUEST),
        ([("ip", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_cannot_be_asked_is_refused(components: Components, code: ErrorCode) -> None:
    response = await ask(components)
    assert (response.error_code, response.entries) == (code, None)
    assert response.error_message
