"""The settings of brokers (26), and what they should be set to.

Brokers return at most 32 messages and 256 KiB for a pull as they are installed, and less of what
they read from disk. That is the only setting that limits a gateway; it changes none itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from rockgate.gateway.rocketmq.cluster.brokers import Brokers, checked
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.protocol.remoting.codes import RequestCode

AGE_S_MAX: Final = 300.0
SIZE_MAX: Final = 1 << 20
COUNT: Final = "maxTransferCountOnMessageInMemory"
COUNT_INSTALLED: Final = 32
COUNT_ADVISED: Final = 100_000
ADVICE: Final = {
    COUNT: COUNT_ADVISED,
    "maxTransferCountOnMessageInDisk": COUNT_ADVISED,
    "maxTransferBytesOnMessageInDisk": 256 << 10,
}

log = logging.getLogger(__name__)


class NamedBrokers(Brokers, Protocol):
    """All masters, by name."""

    @property
    def masters(self) -> list[str]:
        """The names of masters that are there."""
        ...


class ClusterBrokerSettings:
    """The settings of all brokers, asked for now and then."""

    def __init__(self, brokers: NamedBrokers) -> None:
        self._brokers = brokers
        self._settings: dict[str, Mapping[str, str]] = {}
        self._asked_at: dict[str, float] = {}
        self._advised: set[str] = set()

    def pull_count(self, broker: str) -> int:
        """The most messages that a broker returns for a pull."""
        return max(1, self.number(broker, COUNT) or COUNT_INSTALLED)

    def number(self, broker: str, name: str) -> int | None:
        """A setting of a broker that is a number; None if it is unknown."""
        value = self._settings.get(broker, {}).get(name, "")
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 19 else None

    async def learn(self) -> None:
        """Ask all masters that were not asked for a while."""
        now = asyncio.get_running_loop().time()
        late = [
            each
            for each in self._brokers.masters
            if now - self._asked_at.get(each, float("-inf")) > AGE_S_MAX
        ]
        await asyncio.gather(*(self._ask(each, now) for each in late))

    async def _ask(self, broker: str, now: float) -> None:
        try:
            answer = checked(await self._brokers.ask(broker, RequestCode.GET_BROKER_CONFIG))
            text = bytes(answer.body[:SIZE_MAX]).decode("utf-8", "replace")
        except BrokerError as failed:
            log.info("cannot ask broker %s for its settings: %s", broker, failed)
            return
        pairs = (line.partition("=") for line in text.splitlines())
        self._settings[broker] = {name.strip(): value.strip() for name, _, value in pairs}
        self._asked_at[broker] = now
        count = self.number(broker, COUNT)
        if count is not None and count <= COUNT_INSTALLED and broker not in self._advised:
            self._advised.add(broker)
            log.warning("%s", advice(broker, count))


def advice(broker: str, count: int) -> str:
    """What to set at a broker that returns so few messages for a pull."""
    commands = "; ".join(
        f"mqadmin updateBrokerConfig -n NAMESRV -b BROKER:PORT -k {name} -v {value}"
        for name, value in ADVICE.items()
    )
    return (
        f"Broker {broker} returns {count} messages for a pull, which makes reading slow. "
        f"Set, without a restart: {commands}"
    )
