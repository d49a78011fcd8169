"""A certificate authority of one's own: makes its certificate, and those of servers.

Keys are ECDSA on P-256: a handshake costs a server a tenth of one with RSA.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS: Final = 3_650
SERVER_DAYS: Final = 397
CLOCK_SKEW: Final = timedelta(minutes=5)
"""How much later another machine's clock may be."""
COMMON_NAME_MAX: Final = 64
_HASH: Final = hashes.SHA256()


class InvalidCertificate(ValueError):
    """A certificate or key that cannot be used; the text is a clause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Issues certificates."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def new(cls, name: str, now: datetime) -> Self:
        """Make one, with a new key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        built = (
            _dated(x509.CertificateBuilder(), now, AUTHORITY_DAYS)
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
        return cls(built.sign(key, _HASH), key)

    @classmethod
    def read(cls, certificate: bytes, key: bytes) -> Self:
        """Read one; InvalidCertificate if the two do not belong together."""
        found = read_certificate(certificate)
        try:
            private = serialization.load_pem_private_key(key, password=None)
        except (ValueError, TypeError):
            raise InvalidCertificate("its key is not a PEM key without a password") from None
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise InvalidCertificate("its key is not ECDSA")
        if private.public_key() != found.public_key():
            raise InvalidCertificate("its key belongs to another certificate")
        return cls(found, private)

    @property
    def pem(self) -> Issued:
        """Its own certificate and key."""
        return Issued(certificate=_pem(self._certificate), key=_key_pem(self._key))

    def has_issued(self, certificate: bytes) -> bool:
        """Whether a certificate is one of its own."""
        try:
            read_certificate(certificate).verify_directly_issued_by(self._certificate)
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True

    def issue(self, hosts: Sequence[str], now: datetime, days: int = SERVER_DAYS) -> Issued:
        """A server's certificate for names and addresses, followed by the authority's."""
        key = ec.generate_private_key(ec.SECP256R1())
        identifier = self._certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        built = (
            _dated(x509.CertificateBuilder(), now, days)
            .subject_name(_name(hosts[0]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName(_alternatives(hosts)), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier.value),
                critical=False,
            )
        )
        chain = _pem(built.sign(self._key, _HASH)) + _pem(self._certificate)
        return Issued(certificate=chain, key=_key_pem(key))


def read_certificate(pem: bytes) -> x509.Certificate:
    """The first certificate of a PEM file; InvalidCertificate if there is none."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        raise InvalidCertificate("it is not a certificate in PEM") from None


def hosts_of(pem: bytes) -> list[str]:
    """The names and addresses that a certificate is for."""
    try:
        found = read_certificate(pem).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return []
    names = found.value.get_values_for_type(x509.DNSName)
    addresses = found.value.get_values_for_type(x509.IPAddress)
    return [*names, *map(str, addresses)]


def expiry_of(pem: bytes) -> datetime:
    """When a certificate expires."""
    return read_certificate(pem).not_valid_after_utc


def now_utc() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def _dated(builder: x509.CertificateBuilder, now: datetime, days: int) -> x509.CertificateBuilder:
    return builder.not_valid_before(now - CLOCK_SKEW).not_valid_after(now + timedelta(days=days))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:COMMON_NAME_MAX])])


def _alternatives(hosts: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for host in dict.fromkeys(hosts):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            try:
                found.append(x509.DNSName(host))
            except ValueError:
                raise InvalidCertificate(f"{host!r} is not a host name") from None
    return found


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
