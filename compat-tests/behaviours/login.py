"""An address with a login: how a client of the behaviours proves who it is, over TLS.

Drivers take it as any other address, and read the login from it. `login_fields` is what programs
are sent; the others are the options of Python clients.
"""

from __future__ import annotations

import ssl
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A password by a mechanism of SASL, or a certificate."""

    ca: str
    """File of the authority that the client trusts."""
    mechanism: str | None = None
    """None for a certificate."""
    user: str = ""
    password: str = ""
    certificate: str | None = None
    key: str | None = None

    @property
    def protocol(self) -> str:
        """Kafka's security.protocol."""
        return "SASL_SSL" if self.mechanism else "SSL"


class SecuredAddress(str):
    """HOST:PORT of a listener with TLS, and the login there."""

    login: Login

    def __new__(cls, address: str, login: Login) -> SecuredAddress:
        made = super().__new__(cls, address)
        made.login = login
        return made


def login_of(bootstrap: str) -> Login | None:
    """The login of an address, if it has one."""
    return bootstrap.login if isinstance(bootstrap, SecuredAddress) else None


def login_fields(bootstrap: str) -> dict[str, Any]:
    """The field `login` of a program's request."""
    login = login_of(bootstrap)
    return {} if login is None else {"login": {**asdict(login), "protocol": login.protocol}}


def librdkafka_options(bootstrap: str) -> dict[str, Any]:
    """Options of confluent-kafka and kcat."""
    login = login_of(bootstrap)
    if login is None:
        return {}
    found = {"security.protocol": login.protocol.lower(), "ssl.ca.location": login.ca}
    if login.mechanism:
        found["sasl.mechanism"] = login.mechanism
        found["sasl.username"] = login.user
        found["sasl.password"] = login.password
    if login.certificate and login.key:
        found["ssl.certificate.location"] = login.certificate
        found["ssl.key.location"] = login.key
    return found


def python_options(bootstrap: str) -> dict[str, Any]:
    """Options of kafka-python and aiokafka."""
    login = login_of(bootstrap)
    if login is None:
        return {}
    context = ssl.create_default_context(cafile=login.ca)
    if login.certificate:
        context.load_cert_chain(login.certificate, login.key)
    found: dict[str, Any] = {"security_protocol": login.protocol, "ssl_context": context}
    if login.mechanism:
        found["sasl_mechanism"] = login.mechanism
        found["sasl_plain_username"] = login.user
        found["sasl_plain_password"] = login.password
    return found


def java_properties(login: Login) -> dict[str, str]:
    """Properties of Kafka's Java clients and tools; the login itself is JAAS."""
    found = {
        "security.protocol": login.protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": login.ca,
    }
    if login.mechanism:
        found["sasl.mechanism"] = login.mechanism
        found["sasl.jaas.config"] = f"{jaas_module(login)};"
    return found


def jaas_module(login: Login) -> str:
    """A login as an entry of a JAAS file has it."""
    plain = "plain.PlainLoginModule"
    name = plain if login.mechanism == "PLAIN" else "scram.ScramLoginModule"
    given = f'username="{login.user}" password="{login.password}"'
    return f"org.apache.kafka.common.security.{name} required {given}"
