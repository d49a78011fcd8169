"""A gateway to a RocketMQ cluster has no users: its listeners are open, or take certificates."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.compose.config.sources import from_pairs
from rockgate.gateway.compose.rocketmq.app import GatewayAssembly
from rockgate.gateway.runtime.errors import StartError


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        ("kafka.security_protocol=SASL_SSL", "a gateway has none"),
        ("kafka.listen=0.0.0.0:0", "does not authenticate them"),
        ("rocketmq.name_servers=", "No name server given"),
    ],
)
async def test_a_gateway_that_cannot_authenticate_does_not_start(pair: str, reason: str) -> None:
    given = {"kafka.listen": "127.0.0.1:0", **dict([pair.split("=")])}
    config = gather(from_pairs([f"{name}={value}" for name, value in given.items()])).config
    async with AsyncExitStack() as resources:
        with pytest.raises(StartError) as refused:
            await GatewayAssembly(config, given).open(resources)
    assert reason in " ".join(str(refused.value).split())
