"""Configs as clients give them: known by name, read by type, checked together.

There is a table of configs for each type of resource. Every rejection is INVALID_CONFIG with a
sentence that names the config and what it accepts.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from rockgate.gateway.kafka.configs.client_metrics import (
    CLIENT_METRICS_CONFIGS,
    SubscriptionConfig,
    check_together,
)
from rockgate.gateway.kafka.configs.group import GROUP_CONFIGS, GroupConfig
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS, TopicConfig
from rockgate.gateway.kafka.configs.types import ConfigKind, ConfigType
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

_QUOTED_MAX = 80


class Known(Protocol):
    """What is needed to check a config."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def type(self) -> ConfigType:
        """The type of its value."""
        ...

    @property
    def default(self) -> str:
        """Its value when it is not set."""
        ...


C = TypeVar("C", bound=Known)


class ConfigTable(Generic[C]):
    """All configs of one type of resource."""

    def __init__(
        self,
        what: str,
        configs: Mapping[str, C],
        check: Callable[[Mapping[str, str]], None] = lambda config: None,
        *,
        unknown: ErrorCode = ErrorCode.INVALID_CONFIG,
    ) -> None:
        """`check` rejects configs that contradict each other; each was parsed before.

        `unknown` is the error of a config that does not exist.
        """
        self._what = what
        self._unknown = unknown
        self._configs = configs
        self.check_together = check

    def __contains__(self, name: str) -> bool:
        return name in self._configs

    def canonical(self, name: str) -> str:
        """The name under which a config is saved."""
        return name

    def known(self, name: str) -> C:
        """The config of that name; INVALID_CONFIG names the nearest if there is none."""
        config = self._configs.get(name)
        if config is None:
            quoted = name if len(name) <= _QUOTED_MAX else f"{name[:_QUOTED_MAX]}…"
            near = difflib.get_close_matches(name[:_QUOTED_MAX], self._configs, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RequestError(
                self._unknown, f"Unknown {self._what} config {quoted!r}{hint or '.'}"
            )
        return config

    def read_value(self, name: str, text: str) -> str:
        """A value in its canonical form;

        INVALID_CONFIG if the config is unknown or the value invalid.
        """
        try:
            return self.known(name).type.read(text)
        except ValueError as error:
            raise RequestError(ErrorCode.INVALID_CONFIG, f"Config {name} {error}.") from None

    def read_all(self, given: Iterable[tuple[str, str | None]]) -> dict[str, str]:
        """Configs of a request, checked alone and together. Of a repeated one the last counts."""
        found: dict[str, str] = {}
        for name, text in given:
            if text is None:
                raise RequestError(
                    ErrorCode.INVALID_CONFIG, f"Config {self.known(name).name} requires a value."
                )
            found[self.canonical(name)] = self.read_value(name, text)
        self.check_together(found)
        return found

    def check_list(self, name: str) -> None:
        """INVALID_CONFIG unless a config is a list."""
        if self.known(name).type.kind is not ConfigKind.LIST:
            raise RequestError(ErrorCode.INVALID_CONFIG, f"Config {name} is not a list.")


def _check_lags(config: Mapping[str, str]) -> None:
    least, most = "min.compaction.lag.ms", "max.compaction.lag.ms"
    low = int(config.get(least, TOPIC_CONFIGS[least].default))
    high = int(config.get(most, TOPIC_CONFIGS[most].default))
    if low > high:
        raise RequestError(
            ErrorCode.INVALID_CONFIG, f"{least} ({low}) must not exceed {most} ({high})."
        )


TOPICS: ConfigTable[TopicConfig] = ConfigTable("topic", TOPIC_CONFIGS, _check_lags)
GROUPS: ConfigTable[GroupConfig] = ConfigTable("group", GROUP_CONFIGS)
CLIENT_METRICS: ConfigTable[SubscriptionConfig] = ConfigTable(
    "client metrics", CLIENT_METRICS_CONFIGS, check_together, unknown=ErrorCode.INVALID_REQUEST
)
