"""The configs of client metrics subscriptions in Kafka 4.3 (KIP-714), and what a match may be.

docs/reference/protocol.md is generated from the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rockgate.gateway.kafka.configs.types import ConfigKind, ConfigType, items_of
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.patterns import compile_pattern
from rockgate.protocol.kafka.errors import ErrorCode

INTERVAL: Final = "interval.ms"
METRICS: Final = "metrics"
MATCH: Final = "match"
INTERVAL_MS: Final = 300_000
INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 3_600_000
ALL: Final = "*"
"""The metrics of a subscription to all of them."""
TRAITS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""What clients are matched by."""
PATTERN_SIZE_MAX: Final = 256
_LIST: Final = ConfigType(kind=ConfigKind.LIST)


@dataclass(frozen=True, slots=True)
class SubscriptionConfig:
    """One config of client metrics subscriptions."""

    name: str
    type: ConfigType
    default: str
    documentation: str


CLIENT_METRICS_CONFIGS: Final[Mapping[str, SubscriptionConfig]] = {
    config.name: config
    for config in (
        SubscriptionConfig(
            INTERVAL,
            ConfigType(kind=ConfigKind.INT),
            str(INTERVAL_MS),
            "Interval at which clients push their metrics, from 100 ms to an hour.",
        ),
        SubscriptionConfig(
            MATCH,
            _LIST,
            "",
            "Which clients push: a list of NAME=PATTERN that all must match, in RE2; the names are "
            f"{', '.join(sorted(TRAITS))}.",
        ),
        SubscriptionConfig(
            METRICS, _LIST, "", "Prefixes of the names of metrics to push; `*` means all."
        ),
    )
}


def check_together(config: Mapping[str, str]) -> None:
    """INVALID_REQUEST or INVALID_CONFIG, as in Kafka, for values that parse but cannot be used."""
    interval_ms = int(config.get(INTERVAL, INTERVAL_MS))
    if not INTERVAL_MS_MIN <= interval_ms <= INTERVAL_MS_MAX:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for {INTERVAL}, interval must be between "
            f"{INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour).",
        )
    compiled_match(config.get(MATCH, ""))


def compiled_match(text: str) -> dict[str, Any]:
    """The pattern of each trait that is matched; INVALID_CONFIG if the list is none."""
    found: dict[str, Any] = {}
    for item in items_of(text):
        trait, _, pattern = item.partition("=")
        if trait.strip() not in TRAITS or not pattern or "=" in pattern:
            raise _illegal(item)
        if len(pattern) > PATTERN_SIZE_MAX:
            raise _illegal(f"{item[:40]}…")
        try:
            found[trait.strip()] = compile_pattern(pattern.strip())
        except ValueError as error:
            raise _illegal(item) from error
    return found


def _illegal(item: str) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {item[:PATTERN_SIZE_MAX]!r}."
    )
