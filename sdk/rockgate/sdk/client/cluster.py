"""Every broker of the cluster, from a name server: for clients that register with all of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from rockgate.protocol.remoting.bodies.nameserver import BrokerData, ClusterInfo
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.sdk.client.connection import split_address
from rockgate.sdk.client.name_servers import NameServers

MASTER: Final = 0
MASTER_COUNT_MAX: Final = 4096
"""More brokers than any cluster has; if a name server lists more, the rest is ignored."""

_log: Final = logging.getLogger(__name__)


async def find_brokers(servers: NameServers) -> list[BrokerData]:
    """Every broker of every cluster, from a name server."""
    code = RequestCode.GET_BROKER_CLUSTER_INFO
    found = (await servers.find(code, {}, ClusterInfo, "cluster info")).value
    return [] if found is None else list(found.broker_addr_table.values())


async def find_masters(servers: NameServers) -> set[str]:
    """Where the masters of all brokers are."""
    masters = sorted(masters_of(await find_brokers(servers)).values())
    if len(masters) > MASTER_COUNT_MAX:
        _log.warning(
            "the cluster has %d brokers; the maximum is %d", len(masters), MASTER_COUNT_MAX
        )
    return set(masters[:MASTER_COUNT_MAX])


def masters_of(brokers: Iterable[BrokerData]) -> dict[str, str]:
    """The masters' addresses by the brokers' names; what is no address is left out."""
    found = brokers_of(brokers)
    return {name: addresses[MASTER] for name, addresses in found.items() if MASTER in addresses}


def brokers_of(brokers: Iterable[BrokerData]) -> dict[str, dict[int, str]]:
    """The addresses of brokers by name and id; what is no address is left out."""
    found: dict[str, dict[int, str]] = {}
    for broker in brokers:
        for number, address in broker.broker_addrs.items():
            try:
                split_address(address)
            except ValueError as wrong:
                _log.warning("ignoring broker %s: %s", broker.broker_name, wrong)
                continue
            found.setdefault(broker.broker_name, {})[number] = address
    return found
