"""The options of Kafka's own client, for admin calls that are made without a JVM."""

from __future__ import annotations

import pytest

from rockgate.pipeline.admin.kafka_python import translated
from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.spark.kafka import Cluster

LOGIN = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="ada" password="a\\"b c";'
)


def of(**options: str) -> dict[str, object]:
    given = {name.replace("_", "."): value for name, value in options.items()}
    return translated(Cluster(bootstrap="a:1,b:2", options=given))


def test_without_options_calls_are_bounded() -> None:
    found = of()
    assert found["bootstrap_servers"] == ["a:1", "b:2"]
    assert found["request_timeout_ms"] == 10_000
    assert found["bootstrap_timeout_ms"] == 15_000
    assert of(default_api_timeout_ms="1500")["bootstrap_timeout_ms"] == 1_500


def test_a_login_and_pem_files_are_translated() -> None:
    found = of(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_jaas_config=LOGIN,
        ssl_truststore_type="PEM",
        ssl_truststore_location="ca.pem",
        ssl_keystore_type="PEM",
        ssl_keystore_location="me.pem",
        ssl_key_password="secret",
        ssl_endpoint_identification_algorithm="",
        max_poll_records="7",
    )
    assert (found["security_protocol"], found["sasl_mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == ("ada", 'a"b c')
    assert found["ssl_cafile"] == "ca.pem"
    assert (found["ssl_certfile"], found["ssl_keyfile"]) == ("me.pem", "me.pem")
    assert found["ssl_password"] == "secret"
    assert found["ssl_check_hostname"] is False


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"ssl_truststore_location": "trust.jks"}, "ssl.truststore.type=JKS"),
        ({"ssl_keystore_type": "PKCS12"}, "ssl.keystore.type=PKCS12"),
        ({"sasl_mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI"),
        ({"sasl_login_callback_handler_class": "x.Y"}, "sasl.login.callback.handler.class"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(options: dict[str, str], named: str) -> None:
    with pytest.raises(BadOption, match=named.replace(".", r"\.")):
        of(**options)


def test_a_login_without_a_name_is_refused() -> None:
    with pytest.raises(BadOption, match="must contain username"):
        of(sasl_jaas_config="PlainLoginModule required;")
