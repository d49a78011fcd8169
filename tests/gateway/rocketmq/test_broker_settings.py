"""Brokers that were not tuned are named in the log once, and tuned ones are pulled from in bulk."""

from __future__ import annotations

import logging

import msgspec
import pytest

from rockgate.gateway.rocketmq.cluster.broker_settings import (
    ADVICE,
    COUNT,
    COUNT_INSTALLED,
    ClusterBrokerSettings,
)
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Buffer, Command


class Answering:
    """Two masters and their settings; one that has none does not answer."""

    def __init__(self, **settings: str) -> None:
        self.masters = ["a", "b"]
        self.settings = settings
        self.asked: list[str] = []

    async def ask(
        self,
        broker: str,
        code: RequestCode,
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
        *,
        timeout_s: float = 5.0,
    ) -> Command:
        assert code is RequestCode.GET_BROKER_CONFIG
        self.asked.append(broker)
        if broker not in self.settings:
            raise BrokerLost("no answer")
        return Command(0, body=self.settings[broker].encode())

    async def send(self, queue: QueueName, body: Buffer, born_ms: int) -> Command:
        raise AssertionError("nothing is sent")


async def test_a_broker_as_installed_is_named_with_the_commands_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brokers = Answering(a=f"x=1\n{COUNT}=32\n", b=f"{COUNT}=100000\n")
    settings = ClusterBrokerSettings(brokers)
    with caplog.at_level(logging.WARNING):
        await settings.learn()
        await settings.learn()
    [record] = caplog.records
    assert all(f"-k {name} -v {value}" in record.message for name, value in ADVICE.items())
    assert (settings.pull_count("a"), settings.pull_count("b")) == (32, 100_000)
    assert brokers.asked == ["a", "b"]


async def test_a_broker_that_does_not_answer_counts_as_installed_and_is_asked_again() -> None:
    brokers = Answering(a=f"{COUNT}=many\n")
    settings = ClusterBrokerSettings(brokers)
    await settings.learn()
    await settings.learn()
    assert settings.pull_count("a") == settings.pull_count("b") == COUNT_INSTALLED
    assert brokers.asked == ["a", "b", "b"]
