"""The page of `stats`: it stands alone, and what it shows is what it was given."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from rockgate.pipeline.report import html

START = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n"


def window(
    topic: str, minute: int, records: int, latency_ms: float | None = None
) -> dict[str, Any]:
    start = START + timedelta(minutes=minute)
    return {
        "topic": topic,
        "start": start,
        "end": start + timedelta(minutes=1),
        "records": records,
        "bytes": records * 100,
        "bytes_max": 250,
        "records_per_second": records / 60,
        "bytes_per_second": records * 100 / 60,
        "latency_p50_ms": latency_ms,
        "latency_p99_ms": latency_ms,
        "latency_max_ms": latency_ms,
    }


def behind(group: str, lag: int) -> dict[str, Any]:
    place = {"group": group, "topic": "orders", "partition": 0}
    return {**place, "committed": 10, "end": 10 + lag, "lag": lag}


def images(page: str) -> list[bytes]:
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    return [base64.b64decode(each) for each in found]


def test_tables_and_plots_of_what_was_measured() -> None:
    windows = [window("orders", n, 600 + n, 12.5) for n in range(5)] + [window("audit", 0, 60)]
    page = html("shop", windows, [behind("billing", 1234)])
    assert "<td>orders</td><td>3,010</td>" in page
    assert "<td>audit</td><td>60</td>" in page
    assert "2026-11-16 08:00:00 to 2026-11-16 08:05:00 UTC" in page
    assert (
        "<td>billing</td><td>orders</td><td>0</td><td>10</td><td>1,244</td><td>1,234</td>" in page
    )
    assert len(images(page)) == 4
    assert all(image.startswith(PNG) for image in images(page))


def test_the_page_needs_nothing_beside_it() -> None:
    page = html("shop", [window("orders", 0, 1)], [behind("g", 0)])
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert "<script" not in page


def test_names_cannot_break_the_page() -> None:
    page = html("<b>", [window("<script>alert(1)</script>", 0, 1)], [])
    assert "<script>" not in page
    assert "&lt;b&gt;" in page


def test_an_empty_topic_has_a_page_too() -> None:
    page = html("shop", [], [])
    assert "The topics are empty." in page
    assert images(page) == []
