import logging

import pytest

from rockgate.gateway.kafka.configs import loggers
from rockgate.gateway.kafka.request.errors import RequestError

OURS = "rockgate.gateway.kafka.server.dispatch"


def test_loggers_are_those_of_the_server_and_the_root() -> None:
    logging.getLogger("somebody.else")
    assert loggers.names()[0] == "root"
    assert OURS in loggers.names()
    assert "somebody.else" not in loggers.names()
    # A part of a name that is no logger itself has no level.
    assert "rockgate" not in loggers.names()


def test_levels_have_the_names_of_kafka() -> None:
    levels, logger = loggers.LoggerLevels(), logging.getLogger(OURS)
    root = loggers.level_of("root")
    try:
        for name in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL"):
            levels.put({"1": {"root": root, OURS: name}})
            assert levels.config("1")[OURS] == loggers.level_of(OURS) == name
        levels.put({"1": {"root": root, OURS: "TRACE"}})
        assert logger.level == logging.DEBUG
    finally:
        logger.setLevel(logging.NOTSET)
    assert OURS not in levels.config("1")
    assert loggers.level_of(OURS) == root


def test_the_root_keeps_a_level() -> None:
    with pytest.raises(RequestError, match="root logger"):
        loggers.LoggerLevels().put({"1": {}})
