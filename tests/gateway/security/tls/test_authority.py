from datetime import timedelta

import pytest

from rockgate.gateway.security.tls import authority
from rockgate.gateway.security.tls.authority import Authority, InvalidCertificate

NOW = authority.now_utc().replace(microsecond=0)


def test_a_certificate_is_for_its_hosts_and_days() -> None:
    made = Authority.new("mine", NOW)
    issued = made.issue(["kafka.example", "10.0.0.7", "::1", "kafka.example"], NOW, days=10)
    assert authority.hosts_of(issued.certificate) == ["kafka.example", "10.0.0.7", "::1"]
    assert authority.expiry_of(issued.certificate) == NOW + timedelta(days=10)
    assert issued.certificate.endswith(made.pem.certificate), "the chain is complete"


def test_an_authority_knows_its_own() -> None:
    made, other = Authority.new("mine", NOW), Authority.new("mine", NOW)
    pem = made.issue(["localhost"], NOW).certificate
    assert Authority.read(made.pem.certificate, made.pem.key).has_issued(pem)
    assert not other.has_issued(pem)


def test_what_does_not_belong_together_is_refused() -> None:
    made, other = Authority.new("mine", NOW).pem, Authority.new("other", NOW).pem
    for certificate, key, why in (
        (made.certificate, other.key, "another certificate"),
        (b"junk", made.key, "not a certificate"),
        (made.certificate, b"junk", "not a PEM key"),
    ):
        with pytest.raises(InvalidCertificate, match=why):
            Authority.read(certificate, key)


def test_a_host_that_no_certificate_can_have_is_refused() -> None:
    with pytest.raises(InvalidCertificate, match="is not a host name"):
        Authority.new("mine", NOW).issue(["späti"], NOW)
