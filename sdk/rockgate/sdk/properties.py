"""Java's `.properties` files: the configuration files of Kafka's own clients and tools.

    # a comment
    security.protocol=SASL_SSL
    ssl.truststore.location = /etc/rockgate/ca.pem
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
        username="alice" password="…";

A name ends at `=`, `:` or a blank; a backslash at the end continues the line; elsewhere it escapes
a character, as in `\\u00e9`.
"""

from __future__ import annotations

import re
from typing import Final

_NAME = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_MEANT: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    """The values by name; the last one of a name counts."""
    found: dict[str, str] = {}
    for line in _lines(text):
        match = _NAME.fullmatch(line)
        assert match is not None, "every text matches"
        found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def written_property(name: str, value: str) -> str:
    """A line that is read as this name and value."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    if escaped[:1].isspace():
        escaped = f"\\{escaped}"
    return f"{name}={escaped}\n"


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
