"""AlterConfigs: v0-2.

Behaviour
- The configs of a topic or a group become exactly those given; others are reset to their
  defaults. A group need not exist.
- Each resource succeeds or fails independently. One that is named twice, a config that is given
  twice and a null value are INVALID_REQUEST; names and values that the table of its configs does
  not have are INVALID_CONFIG, and then nothing of that resource is changed.
- Settings of this broker, or of all brokers, as in IncrementalAlterConfigs; those not given return
  to what is configured.
- `validate_only` validates and answers without changing anything.

Versions
- v2: flexible.

Departs from Kafka
- A broker setting that is not known is INVALID_REQUEST; Kafka stores it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from rockgate.gateway.kafka.configs.alteration import ConfigRequests
from rockgate.gateway.kafka.configs.resources import Alterable, Resources
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


class AlterConfigs:
    """Replaces the configs of topics and groups."""

    def __init__(self, *, alterable: Alterable, durability: Durable) -> None:
        self._requests = ConfigRequests(
            alterable=alterable,
            durability=durability,
            response=AlterConfigsResponse,
            result=AlterConfigsResourceResponse,
            plan=_plan,
        )

    def handle(
        self, request: AlterConfigsRequest, call: Call
    ) -> AlterConfigsResponse | Awaitable[AlterConfigsResponse]:
        """Change configs, or only validate the changes."""
        return self._requests.handle(request, call)

    def refuse(self, request: AlterConfigsRequest, code: ErrorCode) -> AlterConfigsResponse:
        """Reject every resource with the same error."""
        return self._requests.refuse(request, code)


def _plan(
    resources: Resources, current: Mapping[str, str], asked: AlterConfigsResource
) -> Mapping[str, str]:
    for config in asked.configs:
        if config.value is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"Config {config.name[:80]} requires a value."
            )
    # Configs of other protocols are not removed by this one.
    table = resources.table
    preserved = {name: text for name, text in current.items() if name not in table}
    return preserved | table.read_all((config.name, config.value) for config in asked.configs)
