import pytest

from rockgate.gateway.kafka.configs.topic import LONG_MAX
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.produce.validate import SettingsCache, TopicSettings
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import Created


def topic(**config: str) -> Topic:
    named = {name.replace("_", "."): text for name, text in config.items()}
    return Topic(Created("t", b"i" * 16, 1, 6, False, named), 0)


def settings(**config: str) -> TopicSettings:
    return SettingsCache(TopicDefaults()).of(topic(**config))


def test_a_topic_without_a_config_has_the_defaults() -> None:
    assert settings() == TopicSettings(
        message_bytes_max=1_048_588,
        timestamp_after_ms_max=3_600_000,
        timestamp_before_ms_max=LONG_MAX,
        is_append_time=False,
        compression=None,
        needs_keys=False,
        is_validating=False,
        is_indexed=False,
        allows_delay=False,
    )
    assert not settings().opens_batches


@pytest.mark.parametrize("kind", ["NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"])
def test_records_wait_on_topics_of_two_types(kind: str) -> None:
    assert settings(message_type=kind).allows_delay is (kind in ("DELAY", "MIXED"))


def test_defaults_come_from_the_server_s_settings() -> None:
    defaults = TopicDefaults({"max.message.bytes": "5", "message.timestamp.type": "LogAppendTime"})
    found = SettingsCache(defaults).of(topic())
    assert (found.message_bytes_max, found.is_append_time) == (5, True)


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("producer", None),
        ("uncompressed", Compression.NONE),
        ("gzip", Compression.GZIP),
        ("snappy", Compression.SNAPPY),
        ("lz4", Compression.LZ4),
        ("zstd", Compression.ZSTD),
    ],
)
def test_a_compression_other_than_the_producer_s_opens_batches(
    text: str, codec: Compression | None
) -> None:
    found = settings(compression_type=text)
    assert found.compression is codec
    assert found.opens_batches == (codec is not None)


@pytest.mark.parametrize(
    ("policy", "needs_keys"),
    [("delete", False), ("compact", True), ("compact,delete", True), ("", False)],
)
def test_a_compacted_topic_needs_keys(policy: str, needs_keys: bool) -> None:
    found = settings(cleanup_policy=policy)
    assert found.needs_keys == found.opens_batches == needs_keys


def test_batches_are_validated_where_the_topic_says_so() -> None:
    assert settings(validate_batches="true").opens_batches
    assert not settings(validate_batches="false").opens_batches


def test_a_config_is_parsed_once_until_it_is_another() -> None:
    cache = SettingsCache(TopicDefaults())
    one = topic(max_message_bytes="5")
    first = cache.of(one)
    assert cache.of(one) is first
    one.config = {"max.message.bytes": "6"}
    assert cache.of(one).message_bytes_max == 6
    cache.forget(one)
    assert cache.of(one).message_bytes_max == 6
