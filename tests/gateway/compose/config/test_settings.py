from typing import get_type_hints

import pytest

from rockgate.gateway.compose.config import SETTINGS, Config
from rockgate.gateway.compose.config.settings import documentation_of
from rockgate.gateway.compose.config.values import kind_of, read, show, units_of


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_documented_with_one_sentence(name: str) -> None:
    setting = SETTINGS[name]
    text = documentation_of(get_type_hints(Config)[setting.section])[setting.field]
    assert text.endswith(".") and "\n" not in text
    assert kind_of(setting.hint)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_default_shown_and_read_again_is_the_same(name: str) -> None:
    setting = SETTINGS[name]
    shown = show(setting.default)
    assert read(shown, setting.hint, units_of(setting.field)) == setting.default
    if setting.default is not None:
        assert setting.read(shown) == setting.default
