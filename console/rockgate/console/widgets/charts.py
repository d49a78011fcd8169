"""Line charts over the last hour. Names in them come from servers, and are drawn as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui

HOUR_MS: Final = 3_600_000
_GREY: Final = "#8793a0"
_COLOURS: Final = ("#2f7fd1", "#d9822b", "#2a9d6a", "#a05fc4", "#c4475a")
Points = Sequence[tuple[int, float]]


def line_chart(title: str, names: Sequence[str], unit: str = "") -> Any:
    """An empty chart; `draw` sets its lines."""
    with ui.column().classes("rg-panel"):
        ui.label(f"{title} ({unit})" if unit else title).classes("rg-tile-name")
        chart = ui.echart(
            {
                "animation": False,
                "backgroundColor": "transparent",
                "color": list(_COLOURS),
                "grid": {
                    "left": 8,
                    "right": 14,
                    "top": 28 if len(names) > 1 else 10,
                    "bottom": 6,
                    "containLabel": True,
                },
                "legend": {"show": len(names) > 1, "top": 0, "textStyle": {"color": _GREY}},
                # `html` would render the names of topics and groups as such.
                "tooltip": {"trigger": "axis", "renderMode": "richText"},
                "xAxis": {"type": "time", "axisLabel": {"color": _GREY, "hideOverlap": True}},
                "yAxis": {
                    "type": "value",
                    "min": 0,
                    "axisLabel": {"color": _GREY},
                    "splitLine": {"lineStyle": {"color": _GREY, "opacity": 0.25}},
                },
                "series": [
                    {
                        "name": name,
                        "type": "line",
                        "showSymbol": False,
                        "data": [],
                        "areaStyle": {"opacity": 0.08},
                    }
                    for name in names
                ],
            }
        ).classes("rg-chart")
        chart.props(f'role="img" aria-label="{title}"')
    return chart


def draw(chart: Any, lines: Sequence[Points], now_ms: int) -> None:
    """Set the lines of a chart, up to now."""
    first = min((line[0][0] for line in lines if line), default=now_ms - 60_000)
    chart.options["xAxis"]["min"] = max(now_ms - HOUR_MS, min(first, now_ms - 60_000))
    chart.options["xAxis"]["max"] = now_ms
    for series, line in zip(chart.options["series"], lines, strict=True):
        series["data"] = [[at, round(value, 3)] for at, value in line]
    chart.update()
