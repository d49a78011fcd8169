"""The report of `stats`: one HTML file that needs nothing beside it, with plots and tables."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
TOPICS_PLOTTED_MAX = 10
WIDTH_INCHES, HEIGHT_INCHES, DPI = 9.0, 2.8, 110

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #1c2733 }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #dde3ea }
th:first-child, td:first-child, td.name, th.name { text-align: left }
img { width: 100% } .note { color: #5d6b7a } td.behind { color: #b3261e; font-weight: 600 }
"""


def html(title: str, windows: Sequence[Row], lag: Sequence[Row]) -> str:
    """The whole page."""
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="note">{escape(_span(windows))}</p>',
        *_section("Topics", _topic_table(windows)),
    ]
    if windows:
        body += _section("Records a second", _image(_lines(windows, "records_per_second", 1, "/s")))
        body += _section("Bytes a second", _image(_lines(windows, "bytes_per_second", 1e6, "MB/s")))
        if any(row["latency_p99_ms"] is not None for row in windows):
            plot = _lines(windows, "latency_p99_ms", 1, "ms (99th percentile)")
            body += _section("Time that records took", _image(plot))
    body += _section("Groups", _lag_table(lag), *([_image(_bars(lag))] if lag else []))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _section(title: str, *parts: str) -> list[str]:
    return [f"<h2>{escape(title)}</h2>", *parts]


def _span(windows: Sequence[Row]) -> str:
    if not windows:
        return "The topics are empty."
    first, last = min(row["start"] for row in windows), max(row["end"] for row in windows)
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC, {len(windows)} windows"


# Tables


def _topic_table(windows: Sequence[Row]) -> str:
    rows = []
    for topic in sorted({row["topic"] for row in windows}):
        own = [row for row in windows if row["topic"] == topic]
        records, size = sum(row["records"] for row in own), sum(row["bytes"] for row in own)
        slowest = [row["latency_p99_ms"] for row in own if row["latency_p99_ms"] is not None]
        rows.append(
            [
                topic,
                f"{records:,}",
                f"{size / 1e6:,.2f}",
                f"{size / records:,.0f}",
                f"{max(row['bytes_max'] for row in own):,}",
                f"{max(row['records_per_second'] for row in own):,.1f}",
                f"{max(slowest):,.0f}" if slowest else "",
            ]
        )
    heads = [
        *("topic", "records", "MB", "bytes, mean", "bytes, largest"),
        *("records/s, busiest window", "ms, slowest 99th percentile"),
    ]
    return _table(heads, rows)


def _lag_table(lag: Sequence[Row]) -> str:
    if not lag:
        return '<p class="note">No group has committed an offset in these topics.</p>'
    rows = [
        [row["group"], row["topic"], str(row["partition"])]
        + [f"{row[name]:,}" for name in ("committed", "end", "lag")]
        for row in lag
    ]
    return _table(["group", "topic", "partition", "committed", "end", "behind"], rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# Plots


def _figure() -> Figure:
    # The object itself and not pyplot: no window system, no state between reports.
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")


def _lines(windows: Sequence[Row], column: str, unit: float, label: str) -> Figure:
    from matplotlib.dates import ConciseDateFormatter

    figure = _figure()
    axes = figure.add_subplot()
    totals: dict[str, int] = {}
    for row in windows:
        totals[row["topic"]] = totals.get(row["topic"], 0) + row["records"]
    largest = sorted(totals, key=lambda topic: (-totals[topic], topic))[:TOPICS_PLOTTED_MAX]
    for topic in sorted(largest):
        own = sorted(
            (row["start"], row[column] / unit)
            for row in windows
            if row["topic"] == topic and row[column] is not None
        )
        times, values = [time for time, _ in own], [value for _, value in own]
        axes.plot(times, values, marker="." if len(own) < 60 else "", label=topic)
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    locator = axes.xaxis.get_major_locator()
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]  # It has no types.
    axes.xaxis.set_major_formatter(formatter)
    return figure


def _bars(lag: Sequence[Row]) -> Figure:
    from matplotlib.ticker import MaxNLocator

    figure = _figure()
    axes = figure.add_subplot()
    totals: dict[str, int] = {}
    for row in lag:
        totals[row["group"]] = totals.get(row["group"], 0) + row["lag"]
    names = sorted(totals, key=lambda group: (totals[group], group))[-20:]
    axes.barh(names, [totals[name] for name in names], color="#4c78a8")
    axes.set_xlabel("records behind, over all partitions")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.set_figheight(max(1.6, 0.35 * len(names) + 1))
    return figure


def _image(figure: Figure) -> str:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI)
    text = base64.b64encode(out.getvalue()).decode("ascii")
    return f'<img alt="" src="data:image/png;base64,{text}">'
