"""Broker configs that can be changed: of this broker, and of all brokers.

They are settings of the server, saved under our names, whichever name a client gives. Kafka's rules
differ from those of other resources: every refusal is INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rockgate.gateway.kafka.configs.broker import BrokerConfig
from rockgate.gateway.kafka.configs.checks import ConfigTable
from rockgate.gateway.kafka.configs.topic_defaults import ConfigSource, Dynamic
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.topics.catalog import NO_REFUSALS, Refusals
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreError

CHANGE_COST = 5
_NAME_CHARS_MAX = 80
_SOURCES = ((False, ConfigSource.BROKER), (True, ConfigSource.ALL_BROKERS))


class Changeable(Protocol):
    """Settings that change while the server runs."""

    def knows(self, name: str) -> bool:
        """Whether a setting is among them."""
        ...

    def read(self, name: str, text: str) -> object:
        """A value of a setting; ValueError says what is wrong with it."""
        ...

    def text(self, value: object) -> str:
        """A value as text."""
        ...

    def at(self, *, of_all: bool) -> Mapping[str, object]:
        """What is set for all brokers, or for this one, by name."""
        ...

    def find(self, name: str, *, of_all: bool) -> object | None:
        """What one of them is set to."""
        ...

    def put(self, changes: Mapping[str, object | None], *, of_all: bool) -> None:
        """Change settings by name, all or none; None is what is configured."""
        ...


class BrokerTable(ConfigTable[Any]):
    """The configs of a broker, of which some can be changed."""

    def __init__(self, configs: Mapping[str, BrokerConfig], changeable: Changeable) -> None:
        super().__init__("broker", configs, unknown=ErrorCode.INVALID_REQUEST)
        self._changeable = changeable

    def canonical(self, name: str) -> str:
        """The setting of a config."""
        return self.known(name).setting or name

    def read_value(self, name: str, text: str) -> str:
        """A value in its canonical form, or RequestError."""
        config = self.known(name)
        setting = config.setting
        if setting is None or not self._changeable.knows(setting):
            reason = f"Cannot update these configs dynamically: [{name[:_NAME_CHARS_MAX]}]."
            if setting is not None:
                reason += f" Set {setting!r} in the configuration and restart the server."
            raise RequestError(ErrorCode.INVALID_REQUEST, reason)
        try:
            return self._changeable.text(self._changeable.read(setting, text))
        except ValueError as error:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"Invalid value for configuration {name}: it {error}."
            ) from None


class BrokerResources:
    """This broker and all brokers, as resources whose configs can be changed."""

    def __init__(self, configs: Mapping[str, BrokerConfig], changeable: Changeable) -> None:
        self.table = BrokerTable(configs, changeable)
        self._configs = configs
        self._changeable = changeable

    def config(self, name: str) -> Mapping[str, str]:
        """What is set for a broker, or for all."""
        found = self._changeable.at(of_all=not name)
        return {setting: self._changeable.text(value) for setting, value in found.items()}

    def text(self, config: Mapping[str, str], name: str) -> str:
        """The value in effect."""
        setting = self.table.canonical(name)
        return config.get(setting, self._configs[setting].value or "")

    def cost(self, name: str) -> int:
        """The same for all."""
        return CHANGE_COST

    def put(self, configs: Mapping[str, Mapping[str, str]]) -> Refusals:
        """Replace what is set, at each level at once."""
        for name, wanted in configs.items():
            before = self.config(name)
            changes: dict[str, object | None] = {
                setting: self._changeable.read(setting, text)
                for setting, text in wanted.items()
                if before.get(setting) != text
            }
            changes |= dict.fromkeys(before.keys() - wanted.keys())
            try:
                self._changeable.put(changes, of_all=not name)
            except StoreError as error:
                raise RequestError(*explain(error)) from error
        return NO_REFUSALS


def is_changeable(changeable: Changeable, config: BrokerConfig) -> bool:
    """Whether a config can be changed."""
    return config.setting is not None and changeable.knows(config.setting)


def dynamic(changeable: Changeable, setting: str, *, of_all: bool = False) -> Sequence[Dynamic]:
    """What a setting is set to, the nearest first; for all brokers only, or for this one."""
    if not changeable.knows(setting):
        return ()
    found = []
    for is_of_all, source in _SOURCES[of_all:]:
        value = changeable.find(setting, of_all=is_of_all)
        if value is not None:
            found.append(Dynamic(changeable.text(value), source))
    return found
