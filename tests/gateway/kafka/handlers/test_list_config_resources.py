import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.list_config_resources import ListConfigResources
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
NODE = str(NODE_ID)


async def ask(version: int, *types: int) -> tuple[int, set[tuple[int, str]]]:
    admin = Admin()
    admin.topic("a")
    admin.topic("%RETRY%g")
    admin.configs.put(GROUP, {"g": {"x": "1"}})
    handler = ListConfigResources(catalog=admin.catalog, node_id=NODE_ID, configs=admin.configs)
    request = ListConfigResourcesRequest(resource_types=list(types))
    response = await seen(handler.handle(request, call(version)), version)
    found = [(each.resource_type, each.resource_name) for each in response.config_resources]
    assert len(found) == len(set(found))
    return response.error_code, set(found)


async def test_everything_that_has_configs_is_listed_by_type() -> None:
    topics = {(TOPIC, "a"), (TOPIC, "rmq.retry.g")}
    ours = {(BROKER, NODE), (LOGGER, NODE)}
    assert await ask(1) == (0, topics | ours | {(GROUP, "g")})
    assert await ask(1, TOPIC) == (0, topics)
    assert await ask(1, BROKER, LOGGER, LOGGER) == (0, ours)
    assert await ask(1, GROUP, METRICS) == (0, {(GROUP, "g")})


async def test_the_first_version_lists_client_metrics_of_which_there_are_none() -> None:
    assert await ask(0) == (0, set())


@pytest.mark.parametrize("types", [(0,), (99,), (TOPIC, 99)])
async def test_a_type_that_does_not_exist_is_refused(types: tuple[int, ...]) -> None:
    assert await ask(1, *types) == (ErrorCode.UNSUPPORTED_VERSION, set())
