"""What people write on the command line: times, durations, pairs, partitions.

Every refusal is a ValueError whose text is a clause for "Invalid OPTION: ...": "expected a duration
such as 10s, got 'soon'".
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from rockgate.gateway.net.address import Address

DEFAULT_PORT: Final = 9092
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_ISO: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_ISO_MS: Final = (86_400_000, 3_600_000, 60_000, 1000)
MILLISECONDS_MAX: Final = 1 << 53


def addresses(text: str, default_port: int = DEFAULT_PORT) -> list[Address]:
    """`HOST:PORT`, several separated by commas; the default port is Kafka's."""
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        has_port = re.search(r":\d+$", part) is not None and not part.endswith("]")
        try:
            address = Address.parse(part if has_port else f"{part}:{default_port}")
        except ValueError:
            raise ValueError(f"expected HOST:PORT, got {part!r}") from None
        if address.port == 0:
            raise ValueError(f"expected a port from 1 to 65535, got {part!r}")
        found.append(address)
    if not found:
        raise ValueError(f"expected HOST:PORT, got {text!r}")
    return found


def duration_ms(text: str) -> int:
    """`500ms`, `10s`, `1h30m`, `7d`, or ISO 8601 as in `PT1H30M`."""
    plain = text.strip()
    parts = _PART.findall(plain)
    if parts and "".join(number + unit for number, unit in parts) == plain:
        total = sum(float(number) * _UNITS_MS[unit] for number, unit in parts)
    elif (iso := _ISO.fullmatch(plain)) and any(iso.groups()):
        total = sum(float(n or 0) * unit for n, unit in zip(iso.groups(), _ISO_MS, strict=True))
    else:
        raise ValueError(f"expected a duration such as 10s, 1h30m or PT1H30M, got {text!r}")
    if total > MILLISECONDS_MAX:
        raise ValueError(f"the duration {text!r} is out of range")
    return int(total)


def time_ms(text: str) -> int:
    """ISO 8601, in UTC unless a zone is given; or milliseconds since 1970."""
    plain = text.strip()
    if plain.isascii() and plain.isdigit() and len(plain) > 8:
        if int(plain[:17]) > MILLISECONDS_MAX or len(plain) > 16:
            raise ValueError(f"the time {text!r} is out of range")
        return int(plain)
    try:
        found = datetime.fromisoformat(plain)
    except ValueError:
        raise ValueError(
            f"expected a time such as 2026-01-31T12:00:00Z or epoch milliseconds, got {text!r}"
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return int(found.timestamp() * 1000)


def time_text(milliseconds: int) -> str:
    """The time as `time_ms` takes it back; "-" for none."""
    if milliseconds < 0:
        return "-"
    try:
        time = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def size_text(size: int) -> str:
    """Bytes for people: 1.5 MiB; "-" for an unknown size."""
    if size < 0:
        return "-"
    amount, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{size} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def pairs(given: Iterable[str], *, may_lack_value: bool = False) -> list[tuple[str, str | None]]:
    """`NAME=VALUE` each; the value may hold further equals signs."""
    found: list[tuple[str, str | None]] = []
    for text in given:
        name, equals, value = text.partition("=")
        if not name.strip() or not (equals or may_lack_value):
            raise ValueError(f"expected NAME=VALUE, got {text!r}")
        found.append((name.strip(), value if equals else None))
    return found


def mapping(given: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` each, by name; a name that comes twice is an error."""
    found: dict[str, str] = {}
    for name, value in pairs(given):
        if name in found:
            raise ValueError(f"{name!r} is given twice")
        found[name] = value or ""
    return found


def topic_partitions(given: Sequence[str]) -> Mapping[str, tuple[int, ...] | None]:
    """`TOPIC` or `TOPIC:0,1,2` each; None means all partitions of the topic."""
    found: dict[str, tuple[int, ...] | None] = {}
    for text in given:
        name, colon, numbers = text.rpartition(":")
        if not colon:
            name, indexes = text, None
        else:
            parts = numbers.split(",")
            if not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
                raise ValueError(f"expected TOPIC or TOPIC:0,1,2, got {text!r}")
            indexes = tuple(sorted({int(part) for part in parts}))
        if not name:
            raise ValueError(f"expected TOPIC or TOPIC:0,1,2, got {text!r}")
        before = found.get(name, ())
        found[name] = (
            None if indexes is None or before is None else tuple(sorted({*before, *indexes}))
        )
    return found


def span_text(milliseconds: int) -> str:
    """How long, in the two largest units: `3s`, `2m 5s`, `1d 4h`."""
    sign, left = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    if left < 1000:
        return f"{sign}{left}ms"
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, _UNITS_MS[unit])
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    return sign + " ".join(filter(None, parts))


def plural(count: int, word: str, words: str = "") -> str:
    """`1 partition`, `2,000 partitions`; `words` where that is more than an s."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {words or f'{word}s'}"
