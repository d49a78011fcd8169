"""A gateway to an Apache RocketMQ cluster of two masters, in the place of the server.

With `ROCKGATE_COMPAT_PEER=gateway` the tests that share a server run against it. What differs there
is in LEFT_OUT, by test and with the reason; docs/guide/rocketmq-cluster.md says the same to users.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from tests.gateway.rocketmq.cluster import gateway, two_masters

_TRANSACTIONS: Final = "there are no transactions over a RocketMQ cluster"
_OWN_SERVER: Final = "the test starts servers of its own"
_CONFIGS: Final = "topics of a RocketMQ cluster have no such config"
_RECORDS: Final = "records cannot be deleted over a RocketMQ cluster"
_DELAYED: Final = "a delayed record has no offset before it is due"
_TOGETHER: Final = "brokers deliver what is due at the same time in any order"
_TIMES: Final = "a time is found by the time of storage"
_CLASSIC: Final = "only classic groups are served"
LEFT_OUT: Final[dict[str, str]] = {
    "transacting": _TRANSACTIONS,
    "transaction": _TRANSACTIONS,
    "aborted": _TRANSACTIONS,
    "surviving": _OWN_SERVER,
    "consumer_protocol": _CLASSIC,
    "consumerprotocol": _CLASSIC,
    "own_suite": _OWN_SERVER,
    "test_delayed_records_of_a_batch_come_when_they_are_due_and_the_others_at_once": _TOGETHER,
    "test_batches_in_which_all_records_wait_are_stepped_over": _DELAYED,
    "test_an_offset_is_found_by_its_time": _TIMES,
    "test_a_topic_s_configs_are_described_and_hold_at_once": _CONFIGS,
    "test_a_topic_may_want_the_server_s_time": _CONFIGS,
    "test_a_topic_may_choose_how_its_batches_are_kept": _CONFIGS,
    "test_records_before_an_offset_are_taken_away": _RECORDS,
}
"""Reasons by what the module, the class or the name of a test contains, in lower case."""


class GatewayPeer:
    """What tests ask of the server."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def address(self, listener: str = "kafka") -> tuple[str, int]:
        """Host and port for Kafka clients."""
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)


@contextmanager
def gateway_peer() -> Iterator[GatewayPeer]:
    """Start a cluster and a gateway."""
    with (
        two_masters(enableMixedMessageType="true") as masters,
        gateway(masters.name_server) as bootstrap,
    ):
        yield GatewayPeer(bootstrap)


def reason_of(item: pytest.Item) -> str | None:
    """Why a test is left out, if it is."""
    function = getattr(item, "function", None)
    owner = f"{getattr(function, '__module__', '')} {getattr(function, '__qualname__', '')}"
    name = f"{item.nodeid} {owner}".lower()
    return next((reason for part, reason in LEFT_OUT.items() if part in name), None)
