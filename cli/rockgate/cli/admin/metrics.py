"""The metrics page of a server: fetched over HTTP, read into numbers by name and labels."""

from __future__ import annotations

import asyncio
import re
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rockgate.cli.client.kafka.errors import ClientError, NotServed, Unreachable, Unusable
from rockgate.gateway.net.address import Address

PORT: Final = 8080
PATH: Final = "/metrics"
PAGE_BYTES_MAX: Final = 32 << 20
SERIES_MAX: Final = 200_000
_SAMPLE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Metrics:
    """The samples of one page."""

    series: Mapping[str, Mapping[Labels, float]] = field(default_factory=dict)

    def total(self, *names: str) -> float:
        """The sum over all labels and names; 0 where there is none."""
        return sum(sum(self.series.get(name, {}).values()) for name in names)

    def value(self, name: str) -> float | None:
        """The sum over all labels, None if the server has no such metric."""
        found = self.series.get(name)
        return None if found is None else sum(found.values())

    def by(self, name: str, label: str) -> dict[str, float]:
        """The sums by the values of a label."""
        sums: dict[str, float] = {}
        for labels, value in self.series.get(name, {}).items():
            key = dict(labels).get(label, "")
            sums[key] = sums.get(key, 0.0) + value
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSource:
    """Where a server has its metrics, and how to log in there."""

    address: Address
    tls: ssl.SSLContext | None = None
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"{'https' if self.tls else 'http'}://{self.address}{PATH}"


async def fetch(source: MetricsSource, timeout_s: float) -> Metrics:
    """The page, read; it is fetched and read in a thread, as it may have thousands of lines."""
    return await asyncio.to_thread(_fetch, source, timeout_s)


def read(text: str) -> Metrics:
    """A page in the text format of Prometheus; ValueError names a line that is none of it."""
    series: dict[str, dict[Labels, float]] = {}
    count = 0
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = _SAMPLE.fullmatch(line)
        if match is None:
            raise ValueError(f"not a sample: {line[:80]!r}")
        count += 1
        if count > SERIES_MAX:
            raise ValueError(f"more than {SERIES_MAX:,} samples")
        name, labels, value = match.groups()
        series.setdefault(name, {})[tuple(_labels(labels or ""))] = float(value)
    return Metrics(series)


def _labels(text: str) -> Iterable[tuple[str, str]]:
    for name, value in _LABEL.findall(text):
        yield name, _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], value)


def _fetch(source: MetricsSource, timeout_s: float) -> Metrics:
    request = urllib.request.Request(source.url)
    if source.username:
        login = b64encode(f"{source.username}:{source.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _NoRedirect()]
    if source.tls is not None:
        handlers.append(urllib.request.HTTPSHandler(context=source.tls))
    try:
        opener = urllib.request.build_opener(*handlers)
        with opener.open(request, timeout=timeout_s) as answer:
            data = answer.read(PAGE_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(source, error) from None
    except OSError as error:
        raise Unreachable(f"Cannot read {source.url}: {error}") from None
    if len(data) > PAGE_BYTES_MAX:
        raise Unusable(f"{source.url} exceeds {PAGE_BYTES_MAX:,} bytes")
    try:
        return read(data.decode())
    except ValueError as error:
        raise Unusable(f"{source.url} is not a page of metrics: {error}") from None


def _refused(source: MetricsSource, error: urllib.error.HTTPError) -> ClientError:
    reason = error.read(200).decode("utf-8", "replace").strip()
    return NotServed(f"{source.url} answered {error.code} {reason or error.reason}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A login must not follow a redirect to another server."""

    def redirect_request(self, *_: object) -> None:
        return None
