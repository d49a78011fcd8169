"""A server that other machines can reach authenticates them, or says that it does not."""

import logging

import pytest

from rockgate.gateway.compose.config import gather
from rockgate.gateway.compose.config.sources import from_pairs
from rockgate.gateway.compose.listeners import endpoints_of, ready, refuse_anonymous
from rockgate.gateway.runtime.errors import ConfigError, StartError

pytestmark = pytest.mark.row("SEC-9")

CERTIFIED = ("tls.client_auth=required", "tls.client_ca_file=ca.pem")


def check(*pairs: str) -> None:
    gathered = gather(from_pairs(pairs))
    every = endpoints_of(gathered.config, gathered.given)
    refuse_anonymous([each for some in every.values() for each in some], gathered.config)


@pytest.mark.parametrize(
    "pairs",
    [
        ("kafka.listen=0.0.0.0:0",),
        ("kafka.listen=broker.example:0",),
        ("kafka.listen=0.0.0.0:0", "kafka.security_protocol=SSL"),
        ("kafka.listeners=A://:1", "kafka.listener_security=A:SSL"),
        ("remoting.listen=[::]:0",),
        ("remoting.listen=[::]:0", "remoting.tls=permissive", *CERTIFIED),
        ("namesrv.listen=10.0.0.1:0",),
        ("http.listen=0.0.0.0:0", "http.tls=true", "tls.client_ca_file=ca.pem"),
        ("http.listen=0.0.0.0:0", "http.tls=true", "http.authentication=off", *CERTIFIED),
    ],
)
def test_a_listener_beyond_loopback_without_authentication_prevents_the_start(
    pairs: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(StartError, match=r"set security\.allow_anonymous=true"):
        check(*pairs)
    with caplog.at_level(logging.WARNING):
        check(*pairs, "security.allow_anonymous=true")
    assert "open to other machines without authentication" in caplog.text


@pytest.mark.parametrize(
    "pairs",
    [
        (),
        ("kafka.listen=localhost:0", "http.listen=[::1]:0"),
        ("kafka.listen=0.0.0.0:0", "kafka.security_protocol=SASL_SSL"),
        ("kafka.listen=0.0.0.0:0", "kafka.security_protocol=SSL", *CERTIFIED),
        ("remoting.listen=0.0.0.0:0", "remoting.authentication=signature"),
        ("namesrv.listen=0.0.0.0:0", "namesrv.tls=enforcing", *CERTIFIED),
        ("http.listen=off",),
        ("http.listen=0.0.0.0:0", "http.tls=true", "http.authentication=on"),
        ("http.listen=0.0.0.0:0", "http.tls=true", "security.authorization=on"),
        ("http.listen=0.0.0.0:0", "http.tls=true", "kafka.security_protocol=SASL_SSL"),
    ],
)
def test_what_authenticates_or_stays_on_this_machine_starts(
    pairs: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    check(*pairs)
    assert not caplog.records


@pytest.mark.parametrize("pair", ["http.authentication=on", "kafka.security_protocol=SASL_SSL"])
def test_pages_do_not_take_logins_in_clear_from_other_machines(pair: str) -> None:
    with pytest.raises(StartError, match=r"passwords in clear\. Set http\.tls=true"):
        check("http.listen=0.0.0.0:0", pair)
    check("http.listen=0.0.0.0:0", pair, "security.allow_plain_without_tls=true")


def test_listeners_that_contradict_each_other_are_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"Invalid listeners: listeners has PLAINTEXT"):
        check("kafka.listen=127.0.0.1:0", "kafka.listeners=PLAINTEXT://127.0.0.1:1")


def test_the_ready_line_has_four_fields_and_then_the_names() -> None:
    gathered = gather(
        from_pairs(["kafka.listeners=A://h:1,B://h:2", "kafka.listener_security=A:SSL,B:SSL"])
    )
    every = endpoints_of(gathered.config, gathered.given)
    assert ready(each for some in every.values() for each in some) == (
        "ready kafka=h:1 remoting=127.0.0.1:10911 namesrv=127.0.0.1:9876 http=127.0.0.1:8080"
        " kafka.B=h:2"
    )
