"""Every variable of the environment that the checkout names is a setting, or known to be none."""

from __future__ import annotations

import re

import pytest
from tests.house.checkout import text_files

from rockgate.gateway.compose.config import gather
from rockgate.gateway.compose.config.gather import VARIABLES
from rockgate.gateway.compose.config.sources import from_environment, is_no_setting
from rockgate.gateway.runtime.errors import ConfigError

_NAMED = re.compile(r"(?<![A-Z0-9_])ROCKGATE_[A-Z0-9_]*[A-Z0-9]")
MISSPELT = {"ROCKGATE_HTPP_LISTEN", "ROCKGATE_KAFKA_LISTENN"}
"""Those that tests write wrongly on purpose."""


def test_no_variable_that_is_named_anywhere_keeps_a_server_from_starting() -> None:
    named: dict[str, str] = {}
    for path, text in text_files():
        named.update((name, str(path)) for name in _NAMED.findall(text))
    assert {"ROCKGATE_BROKER", "ROCKGATE_CONNECTOR_JARS", "ROCKGATE_BOOTSTRAP_SERVER"} <= set(named)
    unknown = {
        name: path
        for name, path in named.items()
        if name not in VARIABLES and name not in MISSPELT and not is_no_setting(name)
    }
    assert unknown == {}


def test_a_setting_that_is_misspelt_is_still_told_with_the_right_name() -> None:
    given = from_environment({"ROCKGATE_KAFKA_LISTENN": "127.0.0.1:9092"}, VARIABLES)
    with pytest.raises(ConfigError, match="Did you mean 'ROCKGATE_KAFKA_LISTEN'"):
        gather(given)
