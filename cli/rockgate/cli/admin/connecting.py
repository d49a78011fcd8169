"""Connections as the config of a client describes them: both wires of one server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rockgate.cli.client.kafka.broker import dial_tcp, dial_tls
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.login import Login
from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.gateway.net.address import Address
from rockgate.sdk.client_config import ClientConfig

CLIENT_ID: Final = "rockgate"


def cluster_of(
    config: ClientConfig,
    seeds: Sequence[Address],
    *,
    timeout_s: float,
    client_id: str = CLIENT_ID,
) -> Cluster:
    """The brokers behind Kafka's listeners, connected to as the config says."""
    context = config.kafka_tls
    return Cluster(
        seeds,
        timeout_s=timeout_s,
        client_id=client_id,
        dial=dial_tcp if context is None else dial_tls(context),
        login=Login(config) if config.has_login else None,
    )


def remoting_of(config: ClientConfig, address: Address, timeout_s: float) -> RemotingConnection:
    """RocketMQ's listener, connected to as the config says."""
    return RemotingConnection(
        address,
        timeout_s=timeout_s,
        tls=config.tls,
        credentials=config.credentials,
    )
