"""What the two handlers share; what they do with it is in their own tests."""

import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin

from rockgate.gateway.kafka.configs.resources import (
    KEY,
    ResourceType,
    check_broker,
    unserved,
)
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_configs import AlterConfigsResource


def test_a_topic_is_found_by_the_name_that_kafka_clients_know() -> None:
    admin = Admin()
    topic = admin.topic("%DLQ%g", segment_ms="5")
    asked = AlterConfigsResource(
        resource_type=ResourceType.TOPIC, resource_name="rmq.dlq.g", configs=[]
    )
    assert admin.alterable().of(asked).config("rmq.dlq.g") is topic.config
    assert KEY(asked) == (2, "rmq.dlq.g")


@pytest.mark.parametrize("name", ["", str(NODE_ID)])
def test_this_broker_and_all_of_them_are_one(name: str) -> None:
    check_broker(name, NODE_ID)


@pytest.mark.parametrize("name", ["8", "x", f" {NODE_ID}", "x" * 10_000])
def test_another_broker_is_not_there(name: str) -> None:
    with pytest.raises(RequestError, match=r"Broker '.*' does not exist; this broker is") as caught:
        check_broker(name, NODE_ID)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert len(caught.value.reason) < 100


def test_what_is_not_served_is_called_by_its_name() -> None:
    assert unserved(16) == "Resource type client metrics has no configs."
    assert unserved(3) == "Unknown resource type 3."
