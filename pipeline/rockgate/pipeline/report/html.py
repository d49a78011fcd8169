"""The report of `stats`: one self-contained HTML file with plots and tables."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from math import nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
TOPICS_PLOTTED_MAX = 10
GROUPS_PLOTTED_MAX = 20
NAMES_LISTED_MAX = 20
NO_LATENCY = (
    "Not measured: records store when they were written, not when they were sent. If your "
    "producers add the send time, in milliseconds, as a header, name it with --latency-header."
)
WIDTH_INCHES, HEIGHT_INCHES, DPI = 9.0, 2.8, 110

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #1c2733 }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #dde3ea }
th:first-child, td:first-child, td.name, th.name { text-align: left }
img { width: 100% } .note { color: #5d6b7a } td.behind { color: #b3261e; font-weight: 600 }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One figure over time: a column of the windows, and how it is displayed."""

    title: str
    column: str
    unit: float
    """What one of the axis's units is in the column's."""
    label: str
    note: str = ""


CURVES = (
    Curve(title="Records per second", column="records_per_second", unit=1, label="records/s"),
    Curve(title="Bytes per second", column="bytes_per_second", unit=1e6, label="MB/s"),
    Curve(
        title="Latency",
        column="latency_p99_ms",
        unit=1,
        label="ms, 99th percentile",
        note="From the send time in the record's header (--latency-header) to its timestamp: "
        "99% of the records in a window took at most this long. Consumer lag is not included.",
    ),
)


def html(title: str, windows: Sequence[Row], lag: Sequence[Row]) -> str:
    """The whole page."""
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="note">{escape(_span(windows))}</p>',
        *_section("Topics", _topic_table(windows)),
    ]
    for curve in CURVES:
        if any(row[curve.column] is not None for row in windows):
            body += _plotted(windows, curve)
    if windows and not any(row["latency_p99_ms"] is not None for row in windows):
        body += _section("Latency", _note(NO_LATENCY))
    body += _section("Groups", _lag_table(lag), *(_lag_plot(lag) if lag else []))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _plotted(windows: Sequence[Row], curve: Curve) -> list[str]:
    """A curve's section: what it means, the plot, and what is not in it."""
    plotted, left_out = _largest(windows)
    figure = _lines(windows, curve, plotted)
    alt = (
        f"{curve.title} ({curve.label}) of {', '.join(plotted)} over time; "
        f"at most {_most(windows, curve):,.1f}. The table of topics has the figures."
    )
    notes = [_note(curve.note)] if curve.note else []
    if left_out:
        names = ", ".join(left_out[:NAMES_LISTED_MAX])
        more = (
            f" and {len(left_out) - NAMES_LISTED_MAX} more" if left_out[NAMES_LISTED_MAX:] else ""
        )
        notes.append(
            _note(
                f"The {len(plotted)} topics with the most records; not in the plot: {names}{more}."
            )
        )
    return _section(curve.title, *notes, _image(figure, alt))


def _lag_plot(lag: Sequence[Row]) -> list[str]:
    totals: dict[str, int] = {}
    for row in lag:
        totals[row["group"]] = totals.get(row["group"], 0) + row["lag"]
    names = sorted(totals, key=lambda group: (totals[group], group))
    plotted = names[-GROUPS_PLOTTED_MAX:]
    alt = "Lag by group, in records: " + ", ".join(
        f"{name} {totals[name]:,}" for name in reversed(plotted)
    )
    parts = [_image(_bars({name: totals[name] for name in plotted}), alt)]
    if len(names) > len(plotted):
        parts.insert(0, _note(f"The {len(plotted)} groups with the most lag, of {len(names):,}."))
    return parts


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


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
        *("topic", "records", "MB", "mean bytes", "max bytes"),
        *("max records/s", "max p99 ms"),
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


def _largest(windows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """The topics that are plotted, and those that would make it unreadable, each by name."""
    totals: dict[str, int] = {}
    for row in windows:
        totals[row["topic"]] = totals.get(row["topic"], 0) + row["records"]
    by_size = sorted(totals, key=lambda topic: (-totals[topic], topic))
    return sorted(by_size[:TOPICS_PLOTTED_MAX]), sorted(by_size[TOPICS_PLOTTED_MAX:])


def _most(windows: Sequence[Row], curve: Curve) -> float:
    found = [row[curve.column] for row in windows if row[curve.column] is not None]
    return float(max(found)) / curve.unit


def points(windows: Sequence[Row], topic: str, curve: Curve) -> list[tuple[datetime, float]]:
    """A topic's values in the middle of each window; a window without any breaks the line."""
    own = sorted(
        (row["start"], row["end"], row[curve.column] / curve.unit)
        for row in windows
        if row["topic"] == topic and row[curve.column] is not None
    )
    found: list[tuple[datetime, float]] = []
    last_end: datetime | None = None
    for start, end, value in own:
        if last_end is not None and start > last_end:
            found.append((last_end, nan))
        found.append((start + (end - start) / 2, value))
        last_end = end
    return found


def _lines(windows: Sequence[Row], curve: Curve, topics: Sequence[str]) -> Figure:
    from matplotlib.dates import ConciseDateFormatter

    figure = _figure()
    axes = figure.add_subplot()
    for topic in topics:
        own = points(windows, topic, curve)
        times: list[Any] = [time for time, _ in own]  # Its types know no times.
        values = [value for _, value in own]
        axes.plot(times, values, marker="." if len(own) < 60 else "", label=topic)
    axes.set_ylabel(curve.label)
    axes.set_xlabel("time, UTC")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    locator = axes.xaxis.get_major_locator()
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]  # It has no types.
    axes.xaxis.set_major_formatter(formatter)
    return figure


def _bars(totals: Mapping[str, int]) -> Figure:
    from matplotlib.ticker import MaxNLocator

    figure = _figure()
    axes = figure.add_subplot()
    names = list(totals)
    axes.barh(names, list(totals.values()), color="#4c78a8")
    axes.set_ylabel("group")
    axes.set_xlabel("lag in records, all partitions")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.set_figheight(max(1.6, 0.35 * len(names) + 1))
    return figure


def _image(figure: Figure, alt: str) -> str:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI)
    text = base64.b64encode(out.getvalue()).decode("ascii")
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{text}">'
