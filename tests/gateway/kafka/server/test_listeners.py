import pytest

from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.kafka.server.listeners import protocol_of
from rockgate.gateway.net.address import Address

GIVEN = ("kafka.listen",)


def test_one_listener_is_plain_unless_the_settings_say_otherwise() -> None:
    (only,) = KafkaConfig().endpoints()
    assert (only.name, only.tls, only.authentication) == ("PLAINTEXT", "disabled", "none")
    assert (only.label, only.address) == ("kafka", Address("127.0.0.1", 9092))
    (only,) = KafkaConfig(security_protocol="SASL_SSL").endpoints()
    assert (only.name, only.tls, only.authentication) == ("SASL_SSL", "enforcing", "sasl")


def test_further_listeners_have_their_own_addresses_and_protocols() -> None:
    config = KafkaConfig(
        listeners="PUBLIC://0.0.0.0:9093,SSL://h:9094",
        advertised_listeners="PUBLIC://kafka.example:443",
        listener_security="public:sasl_ssl",
    )
    first, public, ssl = config.endpoints(GIVEN)
    assert [each.label for each in (first, public, ssl)] == ["kafka", "kafka.PUBLIC", "kafka.SSL"]
    assert [protocol_of(each) for each in (first, public, ssl)] == ["PLAINTEXT", "SASL_SSL", "SSL"]
    assert public.advertised == Address("kafka.example", 443) and ssl.advertised is None


def test_a_broker_s_listeners_replace_the_default_one() -> None:
    config = KafkaConfig(listeners="PLAINTEXT://:9092", advertise=Address("a.example", 1))
    (only,) = config.endpoints()
    assert (only.label, only.address) == ("kafka", Address("0.0.0.0", 9092))
    assert only.advertised == Address("a.example", 1)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"listeners": "PUBLIC://h:1"}, "must say which protocol PUBLIC has"),
        ({"listener_security": "A:TLS"}, "must be one of PLAINTEXT, SSL"),
        ({"advertised_listeners": "B://h:1"}, "B, which is not a listener"),
        ({"advertised_listeners": "PLAINTEXT://:1"}, "that clients can connect to"),
        (
            {"advertised_listeners": "PLAINTEXT://h:1", "advertise": Address("h", 1)},
            "which advertise is for",
        ),
    ],
)
def test_listeners_that_make_no_sense_are_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        KafkaConfig(**settings)  # type: ignore[arg-type] # of several types


def test_a_name_that_both_settings_use_is_refused() -> None:
    config = KafkaConfig(listeners="PLAINTEXT://h:1")
    with pytest.raises(ValueError, match=r"which is the name of kafka\.listen"):
        config.endpoints(GIVEN)
