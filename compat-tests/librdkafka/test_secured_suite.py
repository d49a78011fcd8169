"""librdkafka's own tests of TLS and logins, and some of the others over TLS with a login.

The server is as `rockgate secure init` sets it up; a listener beside it demands certificates. What
the suite wants to know of certificates it takes from variables, which its own cluster would set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, leave_out
from behaviours.features import SUITE
from behaviours.librdkafka import TEST_SECONDS_MAX, VERSION, built, run_test
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from tests.cli.secured import Secured
from tests.gateway.security.tls.certificates import Authority

CLIENT = f"librdkafka {VERSION}"
CLIENT_NAME = "librdkafka"
PASSWORD = "of-its-key"  # of a key that lives for one test
PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
ABOUT_LOGINS = ("0097_ssl_verify", "0135_sasl_credentials")
OTHERS = (
    "0012_produce_consume",
    "0017_compression",
    "0022_consume_batch",
    "0030_offset_commit",
    "0039_event_dr",
    "0103_transactions",
)
"""What it has for a short look, without tests that need no broker, and one that times clients."""
WAYS = {
    "ssl": ("0097_ssl_verify", *OTHERS),
    "SCRAM-SHA-256": ABOUT_LOGINS,
    "SCRAM-SHA-512": (*ABOUT_LOGINS, *OTHERS),
    "PLAIN": ABOUT_LOGINS,
}

TRIES = 5
EARLY = "Expected _SSL or _ALL_BROKERS_DOWN error codes, got: Local: Broker transport failure"
"""A client that is held up after its first message, and so finds the server's at once, reports its
own refusal of a certificate so; the suite does not expect that. Then the test is run again."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(TRIES * TEST_SECONDS_MAX)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How the suite connects: its settings by way, and variables about certificates."""

    settings: dict[str, dict[str, object]] = field(default_factory=dict)
    variables: dict[str, object] = field(default_factory=dict)


@contextmanager
def serving(directory: Path) -> Iterator[Ways]:
    """A server, and a client's certificate in every form that the suite reads."""
    files = Secured(directory)
    files.init()
    authority = Authority(directory, "authority")
    certificate, key = authority.issue("server")
    own = forms(authority, directory)
    settings = (
        "kafka.listeners=CERTIFIED://127.0.0.1:0",
        "kafka.listener_security=CERTIFIED:SSL",
        f"tls.certificate_file={certificate}",
        f"tls.key_file={key}",
        f"tls.client_ca_file={authority.file}",
        "tls.client_auth=required",
        "tls.principal_rules=RULE:^CN=(.*?),.*$/$1/L",
        f"security.super_users=User:{CLIENT_NAME};User:admin",
        "group.initial.rebalance.delay.ms=0",
        "num.partitions=4",
    )
    with files.running(*settings) as running:
        encrypted = {
            "ssl.ca.location": authority.file,
            "ssl.certificate.location": own["SSL_pub_pem"],
            "ssl.key.location": own["SSL_priv_pem"],
            "ssl.key.password": PASSWORD,
        }
        ways: dict[str, dict[str, object]] = {
            "ssl": {
                "bootstrap.servers": "{}:{}".format(*running.address("kafka.CERTIFIED")),
                "security.protocol": "ssl",
                **encrypted,
            }
        }
        for mechanism in list(WAYS)[1:]:
            ways[mechanism] = {
                "bootstrap.servers": running.bootstrap,
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": mechanism,
                "sasl.username": "admin",
                "sasl.password": files.password(),
                **encrypted,
            }
        yield Ways(settings=ways, variables=own)


def forms(authority: Authority, directory: Path) -> dict[str, object]:
    """The variables of the suite: a client's certificate and key as PEM, DER and PKCS#12."""
    certificate_file, key_file = authority.issue(CLIENT_NAME)
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
    signer = x509.load_pem_x509_certificate(authority.file.read_bytes())
    sealed = serialization.BestAvailableEncryption(PASSWORD.encode())
    pkcs8 = serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(PEM, pkcs8, sealed))
    contents = {
        "SSL_priv_der": key.private_bytes(
            DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        ),
        "SSL_pub_der": certificate.public_bytes(DER),
        "SSL_ca_der": signer.public_bytes(DER),
        "SSL_pkcs": pkcs12.serialize_key_and_certificates(
            CLIENT_NAME.encode(), key, certificate, [signer], sealed
        ),
    }
    found: dict[str, object] = {
        "SSL_password": PASSWORD,
        "SSL_client_auth": "required",
        "SSL_priv_pem": key_file,
        "SSL_pub_pem": certificate_file,
        "SSL_ca_pem": authority.file,
        "SSL_all_cas_pem": authority.file,
    }
    for name, content in contents.items():
        path = directory / name
        path.write_bytes(content)
        found[name] = path
    return found


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture(scope="module")
def suite() -> Path:
    try:
        return built()
    except CannotRun as reason:
        leave_out(reason)
        raise


@pytest.mark.feature("tests with a broker, over TLS and with logins", SUITE)
@pytest.mark.parametrize(
    ("way", "name"), [(way, name) for way, names in WAYS.items() for name in names]
)
def test_a_test_of_its_own_passes(
    suite: Path, ways: Ways, tmp_path: Path, way: str, name: str
) -> None:
    for _ in range(TRIES):
        state = run_test(
            name,
            suite,
            tmp_path,
            settings=ways.settings[way],
            variables=ways.variables,
            at=suite,
        )
        log = (tmp_path / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        if state == "PASSED" or EARLY not in log:
            break
    assert state == "PASSED", log[-3_000:]
