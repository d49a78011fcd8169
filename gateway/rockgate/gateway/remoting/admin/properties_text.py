"""Settings as RocketMQ's tools read them: Java's properties, one per line."""

from __future__ import annotations

from collections.abc import Mapping


def lines_of(settings: Mapping[str, str]) -> bytes:
    """Return settings as Java's properties."""
    return "".join(f"{name}={value}\n" for name, value in settings.items()).encode()
