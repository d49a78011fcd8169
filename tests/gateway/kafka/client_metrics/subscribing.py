"""Subscriptions to clients' metrics, by the request that tools send."""

from __future__ import annotations

from typing import Any

from tests.gateway.kafka.raw import RawClient

from rockgate.gateway.kafka.configs.resources import ResourceType
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def subscribe(client: RawClient, name: str, **config: str | None) -> tuple[int, str]:
    """Set configs of a subscription, delete those that are None; the error and its message."""
    changes = [
        AlterableConfig(name=key, config_operation=0 if value is not None else 1, value=value)
        for key, value in config.items()
    ]
    resource = AlterConfigsResource(
        resource_type=ResourceType.CLIENT_METRICS, resource_name=name, configs=changes
    )
    response: Any = client.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        IncrementalAlterConfigsRequest(resources=[resource]),
        IncrementalAlterConfigsResponse,
    )
    (answer,) = response.responses
    return answer.error_code, answer.error_message
