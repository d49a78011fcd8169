"""Times in the reader's zone, with the exact milliseconds beside them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from typing import Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nicegui import ui

from rockgate.cli.text.values import span_text

TZ_COOKIE: Final = "rockgate_zone"
ZONE_CHARS_MAX: Final = 64


def zone_of(name: str | None) -> tzinfo:
    """The zone of a name that a browser gave; UTC where it is unknown here."""
    plain = unquote(name or "")
    if not plain or len(plain) > ZONE_CHARS_MAX:
        return UTC
    try:
        return ZoneInfo(plain)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def reader_zone() -> tzinfo:
    """The zone of the visitor of the page that is built."""
    return zone_of(ui.context.client.request.cookies.get(TZ_COOKIE))


def now_ms() -> int:
    """The time here, which need not be the server's."""
    return int(time.time() * 1000)


def time_text(ms: int, zone: tzinfo) -> str:
    """A time for people: 2026-01-31 12:00:00.000 with its zone's offset; - for none."""
    if ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(ms // 1000, zone)
    except (OverflowError, ValueError, OSError):
        return f"{ms:,} ms"
    offset = "" if zone is not UTC else " UTC"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}{offset}"


def exact(ms: int) -> str:
    """The text on hover."""
    return f"{ms} ms since 1970" if ms >= 0 else ""


def ago_text(ms: int, now_ms: int) -> str:
    """`2m 5s ago`, or `in 3h`."""
    if ms < 0:
        return "-"
    left = ms - now_ms
    return f"in {span_text(left)}" if left > 0 else f"{span_text(-left)} ago"
