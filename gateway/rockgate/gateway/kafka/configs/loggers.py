"""The server's loggers as Kafka's clients see a broker's: each with a level that can be changed.

Levels have Kafka's names. A change holds until the server stops; open connections continue to use
the level of their start for lines that are logged per request.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rockgate.gateway.kafka.configs.checks import ConfigTable
from rockgate.gateway.kafka.configs.topic import one_of
from rockgate.gateway.kafka.configs.types import ConfigType
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.topics.catalog import NO_REFUSALS, Refusals
from rockgate.protocol.kafka.errors import ErrorCode

ROOT = "root"
_OURS = "rockgate."
_LEVELS: Mapping[str, int] = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NAMES = {level: name for name, level in _LEVELS.items()}
_TYPE = one_of(*_LEVELS)


@dataclass(frozen=True, slots=True)
class LoggerConfig:
    """A logger as a config."""

    name: str
    type: ConfigType = _TYPE
    default: str = ""


def names() -> list[str]:
    """Every logger of the server, in order, and the root logger."""
    return [ROOT, *sorted(_ours())]


def level_of(name: str) -> str:
    """The effective level of a logger."""
    return _name(_logger(name).getEffectiveLevel())


class _Loggers(Mapping[str, LoggerConfig]):
    """Loggers are created with their modules, so they are looked up on request."""

    def __getitem__(self, name: str) -> LoggerConfig:
        if name != ROOT and name not in set(_ours()):
            raise KeyError(name)
        return LoggerConfig(name)

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(names())


class LoggerLevels:
    """The levels that were set, as configs of this node's loggers."""

    table = ConfigTable("logger", _Loggers())

    def config(self, name: str) -> Mapping[str, str]:
        """The loggers whose level is set."""
        return {each: _name(_logger(each).level) for each in names() if _logger(each).level}

    def text(self, config: Mapping[str, str], name: str) -> str:
        """The effective level of a logger."""
        return level_of(name)

    def cost(self, name: str) -> int:
        """The cost of a change."""
        return 1

    def put(self, configs: Mapping[str, Mapping[str, str]]) -> Refusals:
        """Set levels; loggers that are not named inherit the level of their parent."""
        for config in configs.values():
            if ROOT not in config:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, "The level of the root logger cannot be removed."
                )
            for name in names():
                _logger(name).setLevel(_LEVELS[config[name]] if name in config else logging.NOTSET)
        return NO_REFUSALS


def _ours() -> Iterator[str]:
    known = logging.root.manager.loggerDict
    return (
        name
        for name, logger in list(known.items())
        if name.startswith(_OURS) and isinstance(logger, logging.Logger)
    )


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _name(level: int) -> str:
    return _NAMES.get(level, "INFO")
