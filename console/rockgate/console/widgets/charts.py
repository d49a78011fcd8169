"""Charts over time, of lines and bars. Names in them come from servers, and are drawn as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from nicegui import ui

HOUR_MS: Final = 3_600_000
_GREY: Final = "#8793a0"
_COLOURS: Final = (
    *("#2f7fd1", "#d9822b", "#2a9d6a", "#a05fc4", "#c4475a"),
    *("#3aa6b9", "#b39b2d", "#7a6ff0", "#8a8f98"),
)
Points = Iterable[tuple[int, float]]


def line_chart(title: str, names: Sequence[str], unit: str = "") -> Any:
    """An empty chart; `draw` sets its lines."""
    with ui.column().classes("rg-panel"):
        ui.label(f"{title} ({unit})" if unit else title).classes("rg-tile-name")
        chart = ui.echart(_options(names)).classes("rg-chart")
        chart.props(f'role="img" aria-label="{title}"')
    return chart


def draw(chart: Any, lines: Sequence[Points], now_ms: int) -> None:
    """Set the lines of a chart, up to now."""
    points = [[[at, round(value, 3)] for at, value in line] for line in lines]
    first = min((line[0][0] for line in points if line), default=now_ms - 60_000)
    chart.options["xAxis"]["min"] = max(now_ms - HOUR_MS, min(int(first), now_ms - 60_000))
    chart.options["xAxis"]["max"] = now_ms
    for series, line in zip(chart.options["series"], points, strict=True):
        series["data"] = line
    chart.update()


def redraw_lines(chart: Any, lines: Mapping[str, Points], now_ms: int) -> None:
    """Set the lines of a chart and their names, which may be others than before."""
    names = [each["name"] for each in chart.options["series"]]
    if names != list(lines):
        chart.options["series"] = [_line(name) for name in lines]
        chart.options["legend"]["show"] = len(lines) > 1
        chart.options["grid"]["top"] = 28 if len(lines) > 1 else 10
    draw(chart, list(lines.values()), now_ms)


def bar_chart(title: str) -> Any:
    """An empty chart of stacked bars over time; `draw_bars` sets them."""
    with ui.column().classes("rg-panel"):
        ui.label(title).classes("rg-tile-name")
        chart = ui.echart(_options([]) | {"yAxis": _axis() | {"minInterval": 1}})
        chart.classes("rg-chart").props(f'role="img" aria-label="{title}"')
    return chart


def draw_bars(
    chart: Any, bars: Mapping[str, Points], first_ms: int, last_ms: int, width_ms: int
) -> None:
    """Set the stacked bars of a chart, each of them by the middle of its time."""
    chart.options["xAxis"] |= {"min": first_ms, "max": last_ms}
    chart.options["legend"]["show"] = bool(bars)
    chart.options["grid"]["top"] = 28
    chart.options["series"] = [
        {
            "name": name,
            "type": "bar",
            "stack": "all",
            "barCategoryGap": "15%",
            "data": [[at + width_ms // 2, count] for at, count in points],
        }
        for name, points in bars.items()
    ]
    chart.update()


def _line(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "line",
        "showSymbol": False,
        "data": [],
        "areaStyle": {"opacity": 0.08},
    }


def _axis() -> dict[str, Any]:
    return {
        "type": "value",
        "min": 0,
        "axisLabel": {"color": _GREY},
        "splitLine": {"lineStyle": {"color": _GREY, "opacity": 0.25}},
    }


def _options(names: Sequence[str]) -> dict[str, Any]:
    is_many = len(names) > 1
    return {
        "animation": False,
        "backgroundColor": "transparent",
        "color": list(_COLOURS),
        "grid": {"left": 8, "right": 14, "top": 28 if is_many else 10, "bottom": 6}
        | {"containLabel": True},
        "legend": {"show": is_many, "top": 0, "type": "scroll", "textStyle": {"color": _GREY}},
        # `html` would render the names of topics and groups as such.
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {"type": "time", "axisLabel": {"color": _GREY, "hideOverlap": True}},
        "yAxis": _axis(),
        "series": [_line(name) for name in names],
    }
