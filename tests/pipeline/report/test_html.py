"""The page of `stats`: it stands alone, and what it shows is what it was given."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import isnan
from typing import Any

import pytest

from rockgate.pipeline.report.html import CURVES, TOPICS_PLOTTED_MAX, html, points

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


def test_a_window_without_records_breaks_the_line() -> None:
    windows = [window("orders", minute, 60) for minute in (0, 1, 5, 6)]
    found = points(windows, "orders", CURVES[0])
    assert [isnan(value) for _, value in found] == [False, False, True, False, False]
    assert all(before < after for (before, _), (after, _) in pairwise(found))


def test_a_value_stands_in_the_middle_of_its_window() -> None:
    ((time, value),) = points([window("orders", 0, 60)], "orders", CURVES[0])
    assert (time, value) == (START + timedelta(seconds=30), 1.0)


def test_topics_that_are_not_plotted_are_named() -> None:
    windows = [window(f"t{n:02d}", 0, 100 - n) for n in range(TOPICS_PLOTTED_MAX + 2)]
    page = html("shop", windows, [])
    assert page.count("not in the plot: t10, t11.") == 2
    assert "not in the plot" not in html("shop", windows[:TOPICS_PLOTTED_MAX], [])


def test_groups_that_are_not_plotted_are_counted() -> None:
    page = html("shop", [], [behind(f"g{n:02d}", n) for n in range(25)])
    assert "The 20 groups with the most lag, of 25." in page


def test_every_picture_has_words_in_its_place() -> None:
    page = html("shop", [window("orders", 0, 60, 12.5)], [behind('bil"ling', 7)])
    words = re.findall(r'<img alt="([^"]*)"', page)
    assert len(words) == len(images(page)) == 4
    assert words[0].startswith("Records per second (records/s) of orders over time; at most 1.0.")
    assert words[3] == "Lag by group, in records: bil&quot;ling 7"


def test_latency_is_explained_and_its_absence_too() -> None:
    with_it = html("shop", [window("orders", 0, 60, 12.5)], [])
    assert "to its timestamp" in with_it
    without = html("shop", [window("orders", 0, 60)], [])
    assert "name it with --latency-header" in without


def test_axes_say_what_they_count(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    labels: list[tuple[str, str]] = []
    save = Figure.savefig

    def noted(figure: Figure, *arguments: Any, **more: Any) -> None:
        labels.extend((axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes)
        save(figure, *arguments, **more)

    monkeypatch.setattr(Figure, "savefig", noted)
    html("shop", [window("orders", 0, 60, 12.5)], [behind("billing", 7)])
    assert labels == [
        ("time, UTC", "records/s"),
        ("time, UTC", "MB/s"),
        ("time, UTC", "ms, 99th percentile"),
        ("lag in records, all partitions", "group"),
    ]
