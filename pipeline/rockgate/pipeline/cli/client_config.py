"""How a job logs in: the properties of a Kafka client, from a file and the environment.

The file is one of Kafka's own tools, as `rockgate secure init` writes it, and goes to Spark as it
is. librdkafka's names for a login and its authorities are translated, so that its
file does as well, and variables such as ROCKGATE_CLIENT_SASL_PASSWORD go before both. No secret is
taken from the command line, which every user of a machine can read.

The rules of `.properties` files are written here once more: a job is shipped without other rooms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rockgate.pipeline.errors import BadOption

FILE_VARIABLE: Final = "ROCKGATE_CLIENT_CONFIG"
PREFIX: Final = "ROCKGATE_CLIENT_"
FILE_BYTES_MAX: Final = 1 << 20
SERVERS: Final = "bootstrap.servers"
JAAS: Final = "sasl.jaas.config"
_OF_ENVIRONMENT: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.password.file",
    "ssl.ca.location",
    "ssl.key.password",
)
_VARIABLES: Final = {PREFIX + name.replace(".", "_").upper(): name for name in _OF_ENVIRONMENT}
_RENAMED: Final = {"metadata.broker.list": SERVERS, "sasl.mechanisms": "sasl.mechanism"}
_MODULES: Final = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}
_NO_COUNTERPART: Final = ("ssl.certificate.location", "ssl.key.location")
_SECRET: Final = re.compile(r"password|secret|^ssl\.keystore\.key$", re.IGNORECASE)
_SECRET_IN_JAAS: Final = re.compile(r"(password|secret|token)\w*\s*=", re.IGNORECASE)
_NAME: Final = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_MEANT: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def refuse_secret(name: str, value: str, flag: str) -> None:
    """BadOption for an option with a secret, which it does not quote."""
    is_file = name == "sasl.password.file"
    if (_SECRET.search(name) and not is_file) or (name == JAAS and _SECRET_IN_JAAS.search(value)):
        raise BadOption(
            f"{flag} {name} has a secret, and every user of this machine can read the command line."
            f" Put it into the file of --client-config, or set {PREFIX}SASL_USERNAME and"
            f" {PREFIX}SASL_PASSWORD."
        )


def client_options(file: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """The options of Apache Kafka's client; BadOption says what is wrong, and quotes no secret."""
    found = _read(Path(file)) if file else {}
    for variable, name in _VARIABLES.items():
        if variable in environment:
            found[name] = environment[variable]
    for name in [name for name in found if name.startswith("rocketmq.")]:
        del found[name]
    for name, renamed in _RENAMED.items():
        if name in found:
            found[renamed] = found.pop(name)
    for name in _NO_COUNTERPART:
        if name in found:
            raise BadOption(
                f"Property {name} has no counterpart in Kafka's own client. Set"
                " ssl.keystore.type=PEM and ssl.keystore.location to a file with key and"
                " certificates."
            )
    if "ssl.ca.location" in found:
        found["ssl.truststore.location"] = found.pop("ssl.ca.location")
        found["ssl.truststore.type"] = "PEM"
    return _with_login(found)


def _with_login(found: dict[str, str]) -> dict[str, str]:
    """A user name and a password as JAAS, which is all that Kafka's own client knows."""
    user = found.pop("sasl.username", None)
    password_file, password = (
        found.pop("sasl.password.file", None),
        found.pop("sasl.password", None),
    )
    if password is None and password_file is not None:
        password = _first_line(password_file)
    if user is None and password is None:
        return found
    if not user or not password:
        raise BadOption(
            "A login needs a user name and a password: set sasl.username and sasl.password in the"
            f" file of --client-config, or {PREFIX}SASL_USERNAME and {PREFIX}SASL_PASSWORD."
        )
    mechanism = found.setdefault("sasl.mechanism", "SCRAM-SHA-512").upper()
    module = _MODULES.get(mechanism)
    if module is None:
        raise BadOption(
            f"sasl.mechanism {mechanism[:50]} takes no user name and password. Use"
            f" {', '.join(_MODULES)}, or set {JAAS}."
        )
    found.setdefault("security.protocol", "SASL_SSL")
    found[JAAS] = (
        f"org.apache.kafka.common.security.{module} required"
        f" username={_quoted(user)} password={_quoted(password)};"
    )
    return found


def _quoted(text: str) -> str:
    """A value as JAAS has it."""
    if any(each in text for each in "\n\r\0"):
        raise BadOption("A user name or password must not have line breaks.")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# Files


def _read(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise _unreadable(path, error) from None
    except UnicodeDecodeError:
        raise BadOption(f"Client config {path} is not UTF-8 text.") from None
    if len(data) > FILE_BYTES_MAX:
        raise BadOption(f"Client config {path} exceeds {FILE_BYTES_MAX:,} bytes.")
    return read_properties(text)


def _first_line(name: str) -> str:
    try:
        with Path(name).open(encoding="utf-8") as file:
            return file.readline(1 << 16).rstrip("\r\n")
    except OSError as error:
        raise _unreadable(Path(name), error) from None
    except UnicodeDecodeError:
        raise BadOption(f"File {name} with the password is not UTF-8 text.") from None


def _unreadable(path: Path, error: OSError) -> BadOption:
    return BadOption(f"Cannot read {path}: {error.strerror or error}. Check its path and owner.")


def read_properties(text: str) -> dict[str, str]:
    """The values of a `.properties` file by name; the last one of a name counts."""
    found: dict[str, str] = {}
    for line in _lines(text):
        match = _NAME.fullmatch(line)
        assert match is not None, "every text matches"
        found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _lines(text: str) -> list[str]:
    """The lines that mean something, each with its continuations."""
    found: list[str] = []
    is_continued = False
    for line in text.splitlines():
        line = line.lstrip()
        if is_continued:
            found[-1] += line
        elif not line or line[0] in "#!":
            continue
        else:
            found.append(line)
        backslashes = len(found[-1]) - len(found[-1].rstrip("\\"))
        is_continued = backslashes % 2 == 1
        if is_continued:
            found[-1] = found[-1][:-1]
    return found


def _unescaped(text: str) -> str:
    def meant(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _MEANT.get(match[2], match[2])

    return _ESCAPE.sub(meant, text)
