"""Topics and configs of groups, by the wire: few clients can set the latter."""

from __future__ import annotations

from beside.asking import Broker

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import incremental_alter_configs as altering

GROUP = 32
"""Kafka's number for groups among the resources that have configs."""


def alter_group(
    broker: Broker, group: str, **configs: str
) -> altering.IncrementalAlterConfigsResponse:
    """Set configs of a group, by their names with underscores for dots."""
    said = [
        altering.AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = altering.AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=said)
    request = altering.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    return broker.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, altering.IncrementalAlterConfigsResponse
    )


def configure_group(address: tuple[str, int], group: str, **configs: str) -> None:
    """Set configs of a group, over a connection of its own; it must be taken."""
    broker = Broker("configured", address)
    try:
        (outcome,) = alter_group(broker, group, **configs).responses
    finally:
        broker.close()
    assert not getattr(outcome, "error_code", 0), outcome


def create_topic(address: tuple[str, int], name: str, partitions: int = 1) -> None:
    """Create a topic, and wait until it can be written."""
    broker = Broker("configured", address)
    try:
        broker.create(name, partitions)
    finally:
        broker.close()
