import json
from typing import Any

import pytest
from tests.house.checkout import ROOT

from rockgate.gateway.kafka.configs.checks import GROUPS
from rockgate.gateway.kafka.configs.group import GROUP_CONFIGS
from rockgate.gateway.kafka.request.errors import RequestError

GOLDEN: dict[str, list[Any]] = json.loads(
    (ROOT / "tests/golden/configs/group-kafka-4.3.1.json").read_text("utf-8")
)


def test_the_table_has_every_config_of_kafka_in_order() -> None:
    assert list(GROUP_CONFIGS) == [config["name"] for config in GOLDEN["configs"]]


@pytest.mark.parametrize("golden", GOLDEN["configs"], ids=lambda golden: golden["name"])
def test_type_default_and_synonym_are_those_of_kafka(golden: dict[str, Any]) -> None:
    config = GROUP_CONFIGS[golden["name"]]
    assert config.type.kind == golden["type"]
    assert config.default == golden["default"]
    assert [config.broker] == golden["broker"]
    assert config.type.read(config.default) == config.default
    assert config.documentation == config.about


@pytest.mark.parametrize(("name", "text", "code"), GOLDEN["verdicts"])
def test_a_value_that_kafka_takes_is_taken_and_no_other(name: str, text: str, code: int) -> None:
    if code == 0:
        GROUPS.read_value(name, text)
    else:
        with pytest.raises(RequestError) as caught:
            GROUPS.read_value(name, text)
        assert caught.value.code == code
