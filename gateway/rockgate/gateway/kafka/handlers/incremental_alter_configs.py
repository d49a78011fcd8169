"""IncrementalAlterConfigs: v0-1.

Behaviour
- Single configs of a topic or a group are set (0), deleted (1), or, where they are lists, appended
  to (2) and subtracted from (3); a list that is not set starts from its default. All others stay.
  A group need not exist.
- The levels of this node's loggers can be set and deleted; they last until the server stops.
- Each resource succeeds or fails independently. One that is named twice, a config that is given
  twice, an unknown operation and a null value to set are INVALID_REQUEST; what the table of its
  configs does not take is INVALID_CONFIG, and then nothing of that resource is changed.
- Deleting a config that is not set, or not known, succeeds.
- Settings of this broker, or of all brokers (an empty name), change at once where they can change
  while the server runs, under our names and Kafka's; they are in the log. INVALID_REQUEST names one
  that cannot, and says which setting to change. A bad value is INVALID_REQUEST, too, as in Kafka.
- `validate_only` validates and answers without changing anything.

Versions
- v1: flexible.

Departs from Kafka
- A broker setting that is not known is INVALID_REQUEST; Kafka stores it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from enum import IntEnum

from rockgate.gateway.kafka.configs.alteration import ConfigRequests
from rockgate.gateway.kafka.configs.resources import Alterable, Resources
from rockgate.gateway.kafka.configs.types import items_of
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class Operation(IntEnum):
    """The operations on a config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class IncrementalAlterConfigs:
    """Changes single configs of topics, groups and loggers."""

    def __init__(self, *, alterable: Alterable, durability: Durable) -> None:
        self._requests = ConfigRequests(
            alterable=alterable,
            durability=durability,
            response=IncrementalAlterConfigsResponse,
            result=AlterConfigsResourceResponse,
            plan=_plan,
        )

    def handle(
        self, request: IncrementalAlterConfigsRequest, call: Call
    ) -> IncrementalAlterConfigsResponse | Awaitable[IncrementalAlterConfigsResponse]:
        """Change configs, or only validate the changes."""
        return self._requests.handle(request, call)

    def refuse(
        self, request: IncrementalAlterConfigsRequest, code: ErrorCode
    ) -> IncrementalAlterConfigsResponse:
        """Reject every resource with the same error."""
        return self._requests.refuse(request, code)


def _plan(
    resources: Resources, current: Mapping[str, str], asked: AlterConfigsResource
) -> Mapping[str, str]:
    planned = dict(current)
    for change in asked.configs:
        _change(resources, planned, change)
    resources.table.check_together(planned)
    return planned


def _change(resources: Resources, planned: dict[str, str], change: AlterableConfig) -> None:
    name, value = change.name, change.value
    if change.config_operation == Operation.DELETE:
        if name in resources.table:
            planned.pop(resources.table.canonical(name), None)
        return
    if value is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"Config {name[:80]} requires a value.")
    if change.config_operation != Operation.SET:
        value = _listed(resources, planned, change, value)
    planned[resources.table.canonical(name)] = resources.table.read_value(name, value)


def _listed(
    resources: Resources, planned: Mapping[str, str], change: AlterableConfig, value: str
) -> str:
    """A list with elements added or removed."""
    name, operation = change.name, change.config_operation
    if operation not in (Operation.APPEND, Operation.SUBTRACT):
        raise RequestError(ErrorCode.INVALID_REQUEST, f"Unknown operation {operation}.")
    resources.table.check_list(name)
    items, given = items_of(resources.text(planned, name)), items_of(value)
    if operation == Operation.APPEND:
        return ",".join([*items, *given])
    return ",".join(item for item in items if item not in given)
