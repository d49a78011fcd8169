"""How a client connects, and as whom: one file for Kafka's tools, Spark, the command line and this.

    config = ClientConfig.find()                       # what ROCKGATE_CLIENT_CONFIG names
    async with Producer(…, credentials=config.credentials, tls=config.tls) as producer: …

The file has the properties of Kafka's Java client; librdkafka's names for the same do as well, and
RocketMQ's are added. A variable of the environment goes before the file: `sasl.password` is
ROCKGATE_CLIENT_SASL_PASSWORD. docs/reference/cli.md has the table of properties.
"""

from __future__ import annotations

import difflib
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from rockgate.sdk.credentials import Credentials
from rockgate.sdk.errors import InvalidClientConfig
from rockgate.sdk.properties import read_properties

FILE_VARIABLE: Final = "ROCKGATE_CLIENT_CONFIG"
PREFIX: Final = "ROCKGATE_CLIENT_"
FILE_BYTES_MAX: Final = 1 << 20
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", OAUTHBEARER)
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_FIELDS: Final = {
    "bootstrap.servers": "bootstrap_servers",
    "metadata.broker.list": "bootstrap_servers",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "mechanism",
    "sasl.mechanisms": "mechanism",
    "sasl.username": "username",
    "sasl.password": "password",
    "sasl.password.file": "password_file",
    "sasl.jaas.config": "jaas",
    "sasl.oauthbearer.token.endpoint.url": "token_url",
    "ssl.ca.location": "ca_file",
    "ssl.truststore.location": "ca_file",
    "ssl.truststore.certificates": "ca_certificates",
    "ssl.truststore.type": "truststore_type",
    "ssl.certificate.location": "certificate_file",
    "ssl.key.location": "key_file",
    "ssl.keystore.location": "certificate_file",
    "ssl.keystore.type": "keystore_type",
    "ssl.key.password": "key_password",
    "ssl.endpoint.identification.algorithm": "identification",
    "rocketmq.broker.addr": "broker",
    "rocketmq.namesrv.addr": "name_servers",
    "rocketmq.accessKey": "access_key",
    "rocketmq.secretKey": "secret_key",
    "rocketmq.tls.enable": "remoting_tls",
}
"""What each property sets. Properties of other kinds, such as acks, are not ours to judge."""
_VARIABLES: Final = {
    PREFIX + name.replace(".", "_").upper(): name for name in _FIELDS if name != "sasl.jaas.config"
}
_SECURITY = re.compile(r"(ssl|sasl|security|rocketmq)\.")
_IGNORED: Final = frozenset(
    {
        "ssl.protocol",
        "ssl.provider",
        "ssl.enabled.protocols",
        "ssl.cipher.suites",
        "ssl.secure.random.implementation",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.method",
        "sasl.login.callback.handler.class",
        "security.providers",
    }
)
"""Of Java's client alone; leaving them out makes nothing less secure."""
_PAIR = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
_TOKEN = re.compile(r"""\btokenauth\s*=\s*["']?true""")
_STORE_TYPES: Final = {"ca_file": "truststore_type", "certificate_file": "keystore_type"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """How to connect. What is secret appears in no text."""

    security_protocol: str = "PLAINTEXT"
    mechanism: str = "SCRAM-SHA-512"
    username: str = ""
    password: str = field(default="", repr=False)
    is_token: bool = False
    """Whether username and password are those of a delegation token."""
    token_file: str = ""
    """The file with the token of OAUTHBEARER; read again for each login."""
    ca_file: str = ""
    ca_certificates: str = field(default="", repr=False)
    """Certificates themselves, in PEM."""
    certificate_file: str = ""
    key_file: str = ""
    """If empty, the key is in the certificate's file."""
    key_password: str = field(default="", repr=False)
    checks_host: bool = True
    """Whether a server's certificate has to be for the name that was dialled."""
    bootstrap_servers: str = ""
    broker: str = ""
    name_servers: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    remoting_tls: bool = False
    """Whether RocketMQ's listeners are dialled over TLS."""

    @classmethod
    def find(
        cls,
        file: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        username: str | None = None,
    ) -> Self:
        """What the file says, or that of ROCKGATE_CLIENT_CONFIG, and the environment over it.

        `username` goes before both; a password that belongs to another name is not taken.
        InvalidClientConfig says what is wrong, and never quotes a secret.
        """
        variables = os.environ if environment is None else environment
        path = file or variables.get(FILE_VARIABLE) or None
        given = _file_fields(Path(path)) if path is not None else {}
        chosen = {"username": username} if username else {}
        return cls.of(given, _variable_fields(variables), chosen)

    @classmethod
    def of(cls, *sources: Mapping[str, str]) -> Self:
        """Of fields by name, the strongest source last: `username`, `password` and so on."""
        merged: dict[str, str] = {}
        for source in sources:
            # A password belongs to the name beside it.
            if source.get("username", merged.get("username")) != merged.get("username"):
                for name in ("password", "is_token", "access_key", "secret_key"):
                    merged.pop(name, None)
                # Whoever logs in means a listener that wants it.
                merged.setdefault("security_protocol", "SASL_SSL")
            merged.update(source)
        protocol = _one_of(merged, "security_protocol", PROTOCOLS, "security.protocol")
        tls = merged.pop("remoting_tls", str(protocol.endswith("SSL"))).strip().lower()
        if tls not in ("true", "false"):
            raise InvalidClientConfig("rocketmq.tls.enable must be true or false.")
        is_token = merged.pop("is_token", "") == "true"
        mechanism = _one_of(merged, "mechanism", MECHANISMS, "sasl.mechanism")
        # Kafka: an empty value, or librdkafka's `none`, checks no name.
        identification = merged.pop("identification", "https").lower()
        made = cls(
            security_protocol=protocol,
            mechanism=mechanism,
            is_token=is_token,
            remoting_tls=tls == "true",
            checks_host=identification not in ("", "none"),
            **{name: value for name, value in merged.items() if name in _TEXTS},
        )
        return made._with_key()

    @property
    def has_login(self) -> bool:
        """Whether Kafka's listener wants a login."""
        return self.security_protocol.startswith("SASL_")

    @property
    def lacks_password(self) -> bool:
        """Whether there is a user name, and no password for it."""
        return bool(self.username) and not self.password and self.mechanism != OAUTHBEARER

    def with_password(self, password: str) -> Self:
        """The same, once the password is known."""
        return replace(self, password=password)._with_key()

    def _with_key(self) -> Self:
        """The user's password is the secret of signatures too, unless there is another."""
        if self.access_key or self.is_token or not (self.username and self.password):
            return self
        return replace(self, access_key=self.username, secret_key=self.password)

    # What connections are made with

    @property
    def kafka_tls(self) -> ssl.SSLContext | None:
        """For Kafka's listener; None without TLS."""
        return self._context() if self.security_protocol.endswith("SSL") else None

    @property
    def tls(self) -> ssl.SSLContext | None:
        """For RocketMQ's listeners; None without TLS."""
        return self._context() if self.remoting_tls else None

    @property
    def credentials(self) -> Credentials | None:
        """What requests to RocketMQ's listeners are signed with; None if they are not."""
        if not (self.access_key and self.secret_key):
            return None
        return Credentials(self.access_key, self.secret_key)

    def token(self) -> str:
        """The token of OAUTHBEARER, as the file has it now."""
        if not self.token_file:
            raise InvalidClientConfig(
                "OAUTHBEARER needs a token: set sasl.oauthbearer.token.endpoint.url to its file,"
                " as in file:///run/token."
            )
        return _secret_of(self.token_file, "the token")

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(
                cafile=self.ca_file or None, cadata=self.ca_certificates or None
            )
        except ssl.SSLError as error:
            raise InvalidClientConfig(
                f"Cannot use {self.ca_file or 'the certificates'} as authorities:"
                f" {error.reason or error}. They must be certificates in PEM."
            ) from None
        except OSError as error:
            raise _unreadable(self.ca_file, error) from None
        if self.certificate_file:
            self._load_certificate(context)
        if not self.checks_host:
            context.check_hostname = False
        return context

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        try:
            # Without a function OpenSSL would ask on the terminal.
            context.load_cert_chain(
                self.certificate_file,
                self.key_file or self.certificate_file,
                password=lambda: self.key_password,
            )
        except ssl.SSLError as error:
            raise InvalidClientConfig(
                f"Cannot use {self.certificate_file} as the client's certificate:"
                f" {error.reason or error}. It must be PEM, with its key in the same file or in"
                " ssl.key.location, and an encrypted key needs ssl.key.password."
            ) from None
        except OSError as error:
            raise _unreadable(self.certificate_file, error) from None


_TEXTS: Final = frozenset(
    {
        *("username", "password", "token_file", "ca_file", "ca_certificates", "certificate_file"),
        *("key_file", "key_password", "bootstrap_servers", "broker", "name_servers"),
        *("access_key", "secret_key"),
    }
)


def _file_fields(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise _unreadable(str(path), error) from None
    except UnicodeDecodeError:
        raise InvalidClientConfig(f"Client config {path} is not UTF-8 text.") from None
    if len(data) > FILE_BYTES_MAX:
        raise InvalidClientConfig(f"Client config {path} exceeds {FILE_BYTES_MAX:,} bytes.")
    return _fields(read_properties(text), f"client config {path}")


def _variable_fields(variables: Mapping[str, str]) -> dict[str, str]:
    given = {}
    for variable, value in variables.items():
        if not variable.startswith(PREFIX) or variable == FILE_VARIABLE:
            continue
        name = _VARIABLES.get(variable)
        if name is None:
            near = difflib.get_close_matches(variable, _VARIABLES, n=1)
            raise InvalidClientConfig(
                f"Unknown variable {variable}." + (f" Did you mean {near[0]}?" if near else "")
            )
        given[name] = value
    return _fields(given, "environment")


def _fields(given: Mapping[str, str], origin: str) -> dict[str, str]:
    """Properties as fields; those of another kind are left out."""
    found: dict[str, str] = {}
    for name, value in given.items():
        target = _FIELDS.get(name)
        if target is not None:
            found[target] = value
        elif _SECURITY.match(name) and not _is_harmless(name):
            near = difflib.get_close_matches(name, _FIELDS, n=1)
            raise InvalidClientConfig(
                f"Property {name} ({origin}) is not supported."
                + (f" Did you mean {near[0]}?" if near else " Leave it out.")
            )
    for store, kind in _STORE_TYPES.items():
        _check_store(given, store, found.pop(kind, ""), origin)
    if "jaas" in found:
        found = {**_login(found.pop("jaas"), origin), **found}
    if "password_file" in found:
        found["password"] = _secret_of(found.pop("password_file"), "the password")
    if "token_url" in found:
        found["token_file"] = _path_of(found.pop("token_url"), origin)
    return found


def _is_harmless(name: str) -> bool:
    return name in _IGNORED or name.startswith(("sasl.login.", "ssl.engine.", "sasl.kerberos."))


def _check_store(given: Mapping[str, str], field_name: str, kind: str, origin: str) -> None:
    """Refuse what is not PEM: Java's own formats need Java."""
    store = "ssl.truststore" if field_name == "ca_file" else "ssl.keystore"
    if f"{store}.location" not in given:
        return
    if kind.upper() != "PEM":
        raise InvalidClientConfig(
            f"{store}.type ({origin}) is {kind or 'JKS'}, which only Java can read. Use PEM files,"
            f" which Kafka's clients read too: {store}.type=PEM."
        )


def _login(text: str, origin: str) -> dict[str, str]:
    """The user name and password of a JAAS configuration."""
    if "OAuthBearer" in text:
        return {}
    found = {}
    for match in _PAIR.finditer(text):
        value = match[2] if match[2] is not None else match[3]
        found[match[1]] = re.sub(r"\\(.)", r"\1", value)
    if set(found) != {"username", "password"}:
        raise InvalidClientConfig(
            f'sasl.jaas.config ({origin}) must have username="…" and password="…"; or use'
            " sasl.username and sasl.password."
        )
    if _TOKEN.search(text):
        found["is_token"] = "true"
    return found


def _path_of(url: str, origin: str) -> str:
    if not url.startswith("file:"):
        raise InvalidClientConfig(
            f"sasl.oauthbearer.token.endpoint.url ({origin}) must be a file, as in"
            " file:///run/token: have the token fetched by something else."
        )
    return re.sub("^file:(//)?", "", url)


def _secret_of(path: str, what: str) -> str:
    """The first line of a file."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            line = file.readline(1 << 16).rstrip("\r\n")
    except OSError as error:
        raise _unreadable(path, error) from None
    except UnicodeDecodeError:
        raise InvalidClientConfig(f"File {path} with {what} is not UTF-8 text.") from None
    if not line:
        raise InvalidClientConfig(f"File {path} has no first line with {what}.")
    return line


def _unreadable(path: str, error: OSError) -> InvalidClientConfig:
    return InvalidClientConfig(
        f"Cannot read {path}: {error.strerror or error}. Check its path and owner."
    )


def _one_of(given: dict[str, str], name: str, choices: tuple[str, ...], what: str) -> str:
    text = given.pop(name, choices[0]).strip().upper()
    if text not in choices:
        raise InvalidClientConfig(f"{what} must be one of {', '.join(choices)}, not {text[:50]!r}.")
    return text
