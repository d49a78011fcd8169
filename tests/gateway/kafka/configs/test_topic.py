"""The table against what a real Kafka 4.3.1 said of its own (tests/golden/configs)."""

import json
from typing import Any

import pytest
from tests.house.checkout import ROOT

from rockgate.gateway.kafka.configs.checks import TOPICS
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS, TopicConfig
from rockgate.gateway.kafka.configs.types import ConfigKind
from rockgate.gateway.kafka.request.errors import RequestError

GOLDEN: dict[str, list[Any]] = json.loads(
    (ROOT / "tests/golden/configs/topic-kafka-4.3.1.json").read_text("utf-8")
)
OURS = {"message.index", "message.type", "validate.batches"}


def test_the_table_has_every_config_of_kafka_and_three_of_ours() -> None:
    theirs = {config["name"] for config in GOLDEN["configs"]}
    assert len(theirs) == 33
    assert {name for name, config in TOPIC_CONFIGS.items() if config.is_ours} == OURS
    assert set(TOPIC_CONFIGS) == theirs | OURS
    assert list(TOPIC_CONFIGS) == sorted(TOPIC_CONFIGS)


@pytest.mark.parametrize("golden", GOLDEN["configs"], ids=lambda golden: golden["name"])
def test_type_default_and_synonym_are_those_of_kafka(golden: dict[str, Any]) -> None:
    config = TOPIC_CONFIGS[golden["name"]]
    assert config.type.kind == golden["type"]
    assert config.default == golden["default"]
    assert golden["broker"] in ([config.broker], [])


@pytest.mark.parametrize(("name", "text", "code"), GOLDEN["verdicts"])
def test_a_value_that_kafka_takes_is_taken_and_no_other(name: str, text: str, code: int) -> None:
    if code == 0:
        TOPICS.read_value(name, text)
    else:
        with pytest.raises(RequestError) as caught:
            TOPICS.read_value(name, text)
        assert caught.value.code == code


@pytest.mark.parametrize("config", TOPIC_CONFIGS.values(), ids=lambda config: config.name)
def test_a_config_is_documented_and_takes_its_own_default(config: TopicConfig) -> None:
    assert config.type.read(config.default) == config.default
    assert config.documentation.endswith(".")
    assert config.about in config.documentation and config.here in config.documentation
    if not config.has_effect:
        assert config.here.startswith("No effect")
    if config.type.kind is ConfigKind.STRING:
        assert config.default in config.type.choices


def test_the_documentation_of_compaction_says_what_is_not_compacted_yet() -> None:
    assert "active segment" in TOPIC_CONFIGS["cleanup.policy"].documentation
    assert "without a key" in TOPIC_CONFIGS["cleanup.policy"].documentation
