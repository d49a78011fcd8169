import pytest

from rockgate.gateway.compose.broker_configs import broker_configs, topic_defaults
from rockgate.gateway.compose.config import SETTINGS, gather
from rockgate.gateway.compose.config.kafka_names import KAFKA_NAMES
from rockgate.gateway.compose.config.sources import from_pairs
from rockgate.gateway.kafka.configs.broker import BrokerConfig
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS
from rockgate.gateway.kafka.configs.types import ConfigKind
from rockgate.gateway.net.address import Address

LISTENING = ("kafka.listeners", "kafka.advertised_listeners", "kafka.listener_security")


def configs(*pairs: str) -> dict[str, BrokerConfig]:
    gathered = gather(from_pairs(pairs))
    config = gathered.config
    first, *others = config.kafka.endpoints(gathered.given)
    endpoints = [first.bound(Address("127.0.0.1", 9999)), *others]
    defaults = topic_defaults(config)
    return dict(broker_configs(config, 7, defaults, endpoints=endpoints, given=gathered.given))


def test_every_setting_is_there_by_our_name_and_by_kafka_s() -> None:
    found = configs()
    assert set(SETTINGS) <= set(found)
    assert {name for name, alias in KAFKA_NAMES.items() if alias.scale == 1} <= set(found)
    assert {config.broker for config in TOPIC_CONFIGS.values()} - {None} <= set(found)
    assert "log.retention.hours" not in found
    assert list(found) == sorted(found)


@pytest.mark.parametrize("config", configs().values(), ids=lambda config: config.name)
def test_a_config_is_documented(config: BrokerConfig) -> None:
    assert config.documentation.endswith((".", "`"))
    assert not config.is_set or config.setting in ("server.node_id", *LISTENING)


def test_listeners_are_reported_as_kafka_tells_them_with_the_port_that_was_bound() -> None:
    found = configs("kafka.listen=127.0.0.1:0")
    for name in ("listeners", "advertised.listeners"):
        assert (found[name].value, found[name].is_set) == ("PLAINTEXT://127.0.0.1:9999", True)
    found = configs("kafka.advertise=broker.example:9092")
    assert found["advertised.listeners"].value == "PLAINTEXT://broker.example:9092"
    assert found["listeners"].value == "PLAINTEXT://127.0.0.1:9999"


def test_a_setting_shows_under_both_names_what_was_set() -> None:
    found = configs("log.retention.hours=1", "num.partitions=9", "store.flush=sync")
    for name in ("log.retention.ms", "store.retention_ms"):
        assert (found[name].value, found[name].is_set) == ("3600000", True)
        assert found[name].default == "604800000"
    assert found["num.partitions"].value == found["topics.partitions"].value == "9"
    assert found["log.flush.interval.messages"].value == "1"
    assert found["log.segment.bytes"].setting is None


def test_a_setting_that_was_given_the_value_of_its_default_was_set() -> None:
    found = configs("log.retention.hours=168", "topics.partitions=4")
    for name in ("log.retention.ms", "store.retention_ms", "num.partitions", "topics.partitions"):
        assert found[name].is_set, name
        assert found[name].value == found[name].default
    assert not configs()["topics.partitions"].is_set


def test_the_node_id_is_the_one_that_clients_know() -> None:
    assert configs()["broker.id"].value == configs()["server.node_id"].value == "7"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("topics.auto_create", ConfigKind.BOOLEAN),
        ("topics.partitions", ConfigKind.INT),
        ("store.retention_ms", ConfigKind.LONG),
        ("server.node_id", ConfigKind.INT),
        ("kafka.listen", ConfigKind.STRING),
        ("store.flush", ConfigKind.STRING),
        ("log.cleanup.policy", ConfigKind.LIST),
    ],
)
def test_a_config_has_a_kind(name: str, kind: ConfigKind) -> None:
    assert configs()[name].kind is kind


def test_what_is_not_set_has_no_value() -> None:
    assert configs()["kafka.advertise"].value is None
    assert not configs()["kafka.advertise"].is_set


def test_kafka_s_name_says_which_setting_it_is() -> None:
    found = configs()
    assert found["num.partitions"].documentation.endswith("Set by `topics.partitions`.")
    assert found["topics.partitions"].documentation in found["num.partitions"].documentation
