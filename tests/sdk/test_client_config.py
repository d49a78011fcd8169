from pathlib import Path

import pytest

from rockgate.sdk import ClientConfig, Credentials, InvalidClientConfig

JAVA = """
bootstrap.servers=broker:9093
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-256
ssl.truststore.type=PEM
ssl.truststore.location=/etc/ca.pem
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="alice" password="a\\\\"b";
acks=all
"""
LIBRDKAFKA = """
metadata.broker.list=broker:9093
security.protocol=sasl_ssl
sasl.mechanisms=SCRAM-SHA-256
ssl.ca.location=/etc/ca.pem
sasl.username=alice
sasl.password=a"b
"""
SECRETS = ('a"b', "hunter2")


def found(tmp_path: Path, text: str, **variables: str) -> ClientConfig:
    file = tmp_path / "client.properties"
    file.write_text(text)
    return ClientConfig.find(file, variables)


def test_java_s_names_and_librdkafka_s_mean_the_same(tmp_path: Path) -> None:
    java = found(tmp_path, JAVA)
    assert java == found(tmp_path, LIBRDKAFKA)
    assert (java.security_protocol, java.mechanism) == ("SASL_SSL", "SCRAM-SHA-256")
    assert (java.username, java.password, java.ca_file) == ("alice", 'a"b', "/etc/ca.pem")
    assert java.bootstrap_servers == "broker:9093"


def test_the_password_signs_requests_of_rocketmq_s_clients_too(tmp_path: Path) -> None:
    config = found(tmp_path, JAVA)
    assert config.credentials == Credentials("alice", 'a"b')
    assert config.remoting_tls
    other = found(tmp_path, JAVA + "rocketmq.accessKey=k\nrocketmq.secretKey=s\n")
    assert other.credentials == Credentials("k", "s")
    assert not found(tmp_path, JAVA + "rocketmq.tls.enable=false").remoting_tls


def test_without_a_file_and_variables_everything_is_plain() -> None:
    config = ClientConfig.find(environment={"ROCKGATE_BROKER": "h:1"})
    assert config == ClientConfig()
    assert config.kafka_tls is None and config.tls is None and config.credentials is None


def test_the_environment_names_the_file_and_goes_before_it(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text(LIBRDKAFKA)
    variables = {
        "ROCKGATE_CLIENT_CONFIG": str(file),
        "ROCKGATE_CLIENT_SASL_PASSWORD": "hunter2",
        "ROCKGATE_CLIENT_SASL_MECHANISM": "PLAIN",
    }
    config = ClientConfig.find(environment=variables)
    assert (config.username, config.password, config.mechanism) == ("alice", "hunter2", "PLAIN")


def test_a_password_is_not_sent_for_another_name(tmp_path: Path) -> None:
    config = found(tmp_path, LIBRDKAFKA, ROCKGATE_CLIENT_SASL_USERNAME="bob")
    assert (config.username, config.password, config.credentials) == ("bob", "", None)
    assert config.lacks_password
    assert config.with_password("x").credentials == Credentials("bob", "x")


def test_a_login_wants_tls_unless_told_otherwise() -> None:
    variables = {"ROCKGATE_CLIENT_SASL_USERNAME": "bob"}
    assert ClientConfig.find(environment=variables).security_protocol == "SASL_SSL"
    variables["ROCKGATE_CLIENT_SECURITY_PROTOCOL"] = "SASL_PLAINTEXT"
    assert ClientConfig.find(environment=variables).security_protocol == "SASL_PLAINTEXT"


def test_a_password_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hunter2\n")
    config = found(tmp_path, f"sasl.username=alice\nsasl.password.file={secret}")
    assert config.password == "hunter2"
    secret.write_text("")
    with pytest.raises(InvalidClientConfig, match="has no first line with the password"):
        found(tmp_path, f"sasl.password.file={secret}")


def test_a_token_is_read_from_its_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    text = f"sasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=file://{token}"
    config = found(tmp_path, text)
    token.write_text("first")
    assert config.token() == "first"
    token.write_text("second")
    assert config.token() == "second"


def test_a_delegation_token_is_not_a_secret_of_rocketmq_s(tmp_path: Path) -> None:
    text = JAVA.replace("required", 'required tokenauth="true"')
    config = found(tmp_path, text)
    assert config.is_token
    assert config.credentials is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("security.protocol=TLS", "security.protocol must be one of PLAINTEXT, SSL, .*not 'TLS'"),
        ("sasl.mechanism=GSSAPI", "sasl.mechanism must be one of SCRAM-SHA-512"),
        ("ssl.ca.locaton=x", r"ssl.ca.locaton .*Did you mean ssl.ca.location\?"),
        ("ssl.truststore.location=x", r"ssl.truststore.type .*is JKS, which only Java can read"),
        ("ssl.keystore.location=x\nssl.keystore.type=PKCS12", "is PKCS12, which only Java"),
        ('sasl.jaas.config=X required password="hunter2";', "must have username="),
        ("sasl.oauthbearer.token.endpoint.url=https://x", "must be a file, as in file:///run"),
        ("rocketmq.tls.enable=perhaps", "must be true or false"),
        ("sasl.password.file=/nowhere", "Cannot read /nowhere: No such file"),
    ],
)
def test_what_cannot_be_used_is_said_without_secrets(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(InvalidClientConfig, match=problem) as raised:
        found(tmp_path, text)
    assert not any(secret in str(raised.value) for secret in SECRETS)


def test_a_misspelt_variable_is_said() -> None:
    variables = {"ROCKGATE_CLIENT_SASL_PASWORD": "hunter2"}
    with pytest.raises(InvalidClientConfig, match=r"Did you mean ROCKGATE_CLIENT_SASL_PASSWORD\?"):
        ClientConfig.find(environment=variables)


def test_properties_of_other_kinds_are_not_judged(tmp_path: Path) -> None:
    assert found(tmp_path, "acks=all\nlinger.ms=5\nssl.protocol=TLSv1.3") == ClientConfig()


def test_secrets_appear_in_no_text(tmp_path: Path) -> None:
    assert 'a"b' not in repr(found(tmp_path, LIBRDKAFKA))


def test_authorities_that_cannot_be_used_are_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidClientConfig, match=r"Cannot read /etc/ca\.pem"):
        _ = found(tmp_path, LIBRDKAFKA).kafka_tls
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    with pytest.raises(InvalidClientConfig, match="must be certificates in PEM"):
        _ = found(tmp_path, LIBRDKAFKA, ROCKGATE_CLIENT_SSL_CA_LOCATION=str(junk)).kafka_tls
