"""One config of a broker: a setting of the server, as Kafka's clients see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rockgate.gateway.kafka.configs.types import ConfigKind, ConfigType


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """One setting of the server, as a config."""

    name: str
    kind: ConfigKind
    value: str | None
    default: str | None
    about: Callable[[], str]
    """Returns the documentation. It may have to be looked up, and is rarely requested."""
    setting: str | None = None
    """The setting that changes it; None if none does."""
    is_given: bool = False
    """Whether a file, the environment or a flag sets it, even to its default."""

    @property
    def type(self) -> ConfigType:
        """The type of its value."""
        return ConfigType(kind=self.kind)

    @property
    def is_set(self) -> bool:
        """Whether it was set explicitly."""
        return self.is_given or self.value != self.default

    @property
    def documentation(self) -> str:
        """The documentation in DescribeConfigs."""
        text = self.about()
        return text if self.setting in (None, self.name) else f"{text} Set by `{self.setting}`."


def constant(text: str) -> Callable[[], str]:
    """A documentation that needs no lookup."""
    return lambda: text
