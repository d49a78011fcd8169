import pytest

from rockgate.gateway.compose.broker_configs import topic_defaults
from rockgate.gateway.compose.config import gather
from rockgate.gateway.compose.config.sources import from_pairs
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS
from rockgate.gateway.kafka.configs.topic_defaults import ConfigSource, TopicDefaults, source_of


def defaults(*pairs: str) -> TopicDefaults:
    return topic_defaults(gather(from_pairs(pairs)).config)


@pytest.mark.parametrize("name", TOPIC_CONFIGS)
def test_a_server_with_default_settings_gives_topics_the_defaults_of_the_table(name: str) -> None:
    assert defaults()[name] == TOPIC_CONFIGS[name].default
    assert defaults().set_by_server == frozenset()


@pytest.mark.parametrize(
    ("pair", "name", "text"),
    [
        ("log.retention.hours=1", "retention.ms", "3600000"),
        ("store.retention_bytes=1KiB", "retention.bytes", "1024"),
        ("message.max.bytes=7", "max.message.bytes", "7"),
        ("topics.timestamp_type=logappendtime", "message.timestamp.type", "LogAppendTime"),
        ("log.message.timestamp.after.max.ms=1s", "message.timestamp.after.max.ms", "1000"),
        ("log.message.timestamp.before.max.ms=5", "message.timestamp.before.max.ms", "5"),
        ("compression.type=zstd", "compression.type", "zstd"),
        ("store.flush=sync", "flush.messages", "1"),
    ],
)
def test_a_setting_of_the_server_is_the_default_of_its_topics(
    pair: str, name: str, text: str
) -> None:
    found = defaults(pair)
    assert found[name] == text
    assert found.set_by_server == {name}
    assert TOPIC_CONFIGS[name].type.read(text) == text


def test_a_topic_s_own_config_goes_before_the_default() -> None:
    found = TopicDefaults({"retention.ms": "5"})
    assert found.text({}, "retention.ms") == "5"
    assert found.text({"retention.ms": "9"}, "retention.ms") == "9"
    assert found.text({}, "segment.ms") == "604800000"


def test_a_config_comes_from_the_topic_or_the_server_or_no_one() -> None:
    defaults = TopicDefaults({"retention.ms": "5"})
    assert source_of("retention.ms", {"retention.ms": "5"}, defaults) is ConfigSource.TOPIC
    assert source_of("retention.ms", {}, defaults) is ConfigSource.SERVER
    assert source_of("segment.ms", {}, defaults) is ConfigSource.DEFAULT


def test_the_numbers_are_kafka_s() -> None:
    assert [int(source) for source in ConfigSource] == [1, 2, 3, 4, 5, 6, 7, 8]
