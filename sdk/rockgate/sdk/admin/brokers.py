"""Brokers: list them, read their runtime information, read and change their settings."""

from __future__ import annotations

from rockgate.protocol.remoting.bodies.topics import KeyValues
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.sdk.admin.calls import AdminCalls
from rockgate.sdk.admin.values import Broker, BrokerRuntime, time_of
from rockgate.sdk.errors import Refused


class BrokerAdmin:
    """Asks brokers about themselves."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def all(self) -> list[Broker]:
        """Every broker of every cluster."""
        return list((await self._calls.brokers()).values())

    async def runtime(self, broker: str) -> BrokerRuntime:
        """What a broker's master reports about itself."""
        (address,) = await self._calls.masters(broker=broker)
        code = RequestCode.GET_BROKER_RUNTIME_INFO
        table = (await self._calls.read(address, code, KeyValues)).table
        booted = table.get("bootTimestamp", "")
        return BrokerRuntime(
            version=table.get("brokerVersionDesc", ""),
            booted_at=time_of(int(booted)) if booted.isascii() and booted.isdecimal() else None,
            values=table,
        )

    async def config(self, broker: str) -> dict[str, str]:
        """The settings of a broker's master, by name."""
        (address,) = await self._calls.masters(broker=broker)
        code = RequestCode.GET_BROKER_CONFIG
        answer = await self._calls.ask(address, code)
        try:
            text = bytes(answer.body).decode()
        except UnicodeDecodeError:
            raise Refused(f"{code.name} to {address}", 1, "invalid response: no text") from None
        pairs = (line.partition("=") for line in text.splitlines())
        return {name.strip(): value.strip() for name, sep, value in pairs if sep}
