"""Principals from certificates, by Kafka's `ssl.principal.mapping.rules`.

A rule is `RULE:pattern/replacement/` with an optional L or U for lower or upper case, or DEFAULT.
The first whose pattern matches the whole name decides; if none does, the client is refused.

Departs from Kafka: patterns are Python's, in which everything common is the same; `$1` in a
replacement is a group, as in Java. Patterns come from the settings and names from certificates that
an authority has signed, and both are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

DEFAULT: Final = "DEFAULT"
"""The rule that takes the whole subject."""
RULES_MAX: Final = 64
PATTERN_CHARS_MAX: Final = 512
SUBJECT_CHARS_MAX: Final = 1_024

_RULE = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_GROUP = re.compile(r"\$(\d)")


class NoPrincipal(ValueError):
    """A name that no rule matches."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        found = _GROUP.sub(lambda group: match[int(group[1])] or "", self.replacement)
        return {"L": found.lower(), "U": found.upper()}.get(self.case, found)


class PrincipalRules:
    """The rules in order."""

    def __init__(self, rules: list[_Rule]) -> None:
        self._rules = rules

    @classmethod
    def parse(cls, text: str) -> PrincipalRules:
        """Read a list of rules; ValueError says which one is wrong."""
        rules: list[_Rule] = []
        at, text = 0, text.strip() or DEFAULT
        while at < len(text):
            match = _RULE.match(text, at)
            if match is None:
                raise ValueError(f"principal_rules has no rule at {text[at : at + 40]!r}")
            rules.append(_made(match))
            at = match.end()
            rest = text[at:].lstrip()
            if rest and not rest.startswith(","):
                raise ValueError(f"principal_rules must have a comma before {rest[:40]!r}")
            at = len(text) - len(rest[1:].lstrip())
        if len(rules) > RULES_MAX:
            raise ValueError(f"principal_rules must be at most {RULES_MAX}")
        return cls(rules)

    def name_of(self, subject: str) -> str:
        """The user name for a certificate's subject; NoPrincipal if no rule matches."""
        if len(subject) > SUBJECT_CHARS_MAX:
            raise NoPrincipal("the subject is too long")
        for rule in self._rules:
            name = rule.apply(subject)
            if name:
                return name
        raise NoPrincipal("no rule of tls.principal_rules matches the subject")


def _made(match: re.Match[str]) -> _Rule:
    if match[1]:
        return _Rule(None)
    if len(match[2]) > PATTERN_CHARS_MAX:
        raise ValueError(f"principal_rules must have patterns of at most {PATTERN_CHARS_MAX}")
    try:
        pattern = re.compile(match[2])
    except re.error as error:
        raise ValueError(f"principal_rules has the pattern {match[2]!r}: {error}") from None
    wanted = [int(group) for group in _GROUP.findall(match[3])]
    if max(wanted, default=0) > pattern.groups:
        raise ValueError(f"principal_rules has a group that is not in {match[2]!r}")
    return _Rule(pattern, match[3], match[4])


_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_SPECIAL = re.compile(r'([,+"\\<>;])')


def subject_of(certificate: Mapping[str, Any]) -> str:
    """The subject in the form of RFC 2253, as Java writes it: the last part first.

    Departs from Java: a part without a short name has its long one, where Java has its number.
    """
    parts = certificate.get("subject", ())
    named = [
        "+".join(f"{_SHORT.get(key, key)}={_escaped(value)}" for key, value in part)
        for part in reversed(parts)
    ]
    return ",".join(named)


def _escaped(value: str) -> str:
    text = _SPECIAL.sub(r"\\\1", value)
    if text.startswith((" ", "#")):
        text = "\\" + text
    return text[:-1] + "\\ " if text.endswith(" ") and len(text) > 1 else text
