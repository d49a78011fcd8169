"""openssl s_client at a listener with TLS: versions, the chain, names, certificates of clients."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, debian_program, leave_out
from behaviours.driver import SECONDS_MAX
from behaviours.secured_server import SecuredServer
from tests.gateway.security.tls.certificates import Authority

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def command() -> list[str]:
    try:
        return debian_program("openssl", "openssl", "libssl3")
    except CannotRun as reason:
        leave_out(reason)
        raise


def connected(command: list[str], secured: SecuredServer, listener: str, *flags: str) -> str:
    """What s_client says of a connection that sends nothing."""
    address = "{}:{}".format(*secured.running.address(listener))
    done = subprocess.run(
        [*command, "s_client", "-connect", address, "-CAfile", secured.ca, *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("listener", ["kafka", "kafka.CERTS", "remoting", "namesrv"])
def test_the_chain_verifies_and_the_name_is_the_host_s(
    command: list[str], secured: SecuredServer, listener: str
) -> None:
    said = connected(command, secured, listener, "-verify_ip", "127.0.0.1")
    assert "Verify return code: 0 (ok)" in said
    assert re.search(r"New, TLSv1\.3, Cipher is TLS_", said)
    assert "Peer signature type: ECDSA" in said or "Peer signature type: ecdsa" in said
    said = connected(command, secured, listener, "-verify_hostname", "other.example")
    assert "hostname mismatch" in said.lower()


def test_1_2_is_the_oldest_version(command: list[str], secured: SecuredServer) -> None:
    assert "Protocol  : TLSv1.2" in connected(command, secured, "kafka", "-tls1_2")
    weak = ("-cipher", "ALL:@SECLEVEL=0")
    for old in ("-tls1_1", "-tls1"):
        said = connected(command, secured, "kafka", old, *weak)
        assert "Cipher is (NONE)" in said and "no peer certificate available" in said


def test_a_certificate_is_taken_and_one_of_another_authority_is_not(
    command: list[str], secured: SecuredServer, tmp_path: Path
) -> None:
    login = secured.new_certificate("olga")
    assert login.certificate and login.key
    flags = ("-tls1_2", "-cert", login.certificate, "-key", login.key)
    assert "DONE" in connected(command, secured, "kafka.CERTS", *flags)
    certificate, key = Authority(tmp_path, "stranger").issue("olga")
    flags = ("-tls1_2", "-cert", str(certificate), "-key", str(key))
    assert "DONE" not in connected(command, secured, "kafka.CERTS", *flags)


def test_a_client_cannot_renegotiate_and_nothing_is_compressed(
    command: list[str], secured: SecuredServer
) -> None:
    said = connected(command, secured, "kafka", "-tls1_2")
    assert "Compression: NONE" in said
    assert "Secure Renegotiation IS supported" in said, "as RFC 5746 says"
