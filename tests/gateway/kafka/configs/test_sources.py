from rockgate.gateway.kafka.configs.sources import ConfigSource, source_of
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults


def test_a_config_comes_from_the_topic_or_the_server_or_nobody() -> None:
    defaults = TopicDefaults({"retention.ms": "5"})
    assert source_of("retention.ms", {"retention.ms": "5"}, defaults) is ConfigSource.TOPIC
    assert source_of("retention.ms", {}, defaults) is ConfigSource.SERVER
    assert source_of("segment.ms", {}, defaults) is ConfigSource.DEFAULT


def test_the_numbers_are_kafka_s() -> None:
    assert [int(source) for source in ConfigSource] == [1, 4, 5, 6, 8]
