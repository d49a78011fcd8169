"""Tables: rows of plain cells, with links, times and selection. Cells are text, never HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nicegui import ui

_BODY: Final = r"""
<q-tr :props="props">
  <q-td v-if="SELECTS" auto-width>
    <q-checkbox v-model="props.selected" dense :aria-label="'Select ' + props.key"></q-checkbox>
  </q-td>
  <q-td v-for="col in props.cols" :key="col.name" :props="props">
    <a v-if="props.row.links && props.row.links[col.name]" class="rg-link"
       :href="props.row.links[col.name]">{{ col.value }}</a>
    <span v-else :title="(props.row.titles || {})[col.name]">{{ col.value }}</span>
  </q-td>
</q-tr>
"""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; narrow screens leave out those that are `is_wide`."""

    name: str
    label: str
    is_number: bool = False
    is_wide: bool = False
    is_mono: bool = False


@dataclass(slots=True)
class Row:
    """One row: cells by column, and for some of them where they lead and what hovering says."""

    key: str
    cells: dict[str, Any]
    links: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """As the browser gets it."""
        texts = {name: _text(value) for name, value in self.cells.items()}
        return {"id": self.key, **texts, "links": self.links, "titles": self.titles}


def grid(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    label: str,
    selects: bool = False,
    empty: str = "Nothing here.",
) -> Any:
    """A table; with `selects` its rows can be selected, and `selected` has their data."""
    if not rows and not selects:
        ui.label(empty).classes("rg-quiet")
        return None
    table = ui.table(
        columns=[_column(each) for each in columns],
        rows=[each.data() for each in rows],
        row_key="id",
        selection="multiple" if selects else None,
    )
    table.props(f'flat dense wrap-cells=false aria-label="{_attribute(label)}"')
    table.classes("rg-grid")
    table.add_slot("body", _BODY.replace("SELECTS", "true" if selects else "false"))
    table.add_slot("no-data", f"<span>{_attribute(empty)}</span>")
    return table


def facts(pairs: Sequence[tuple[str, Any]]) -> None:
    """Names and values, one under the other."""
    with ui.element("dl").classes("rg-facts"):
        for name, value in pairs:
            with ui.element("dt"):
                ui.label(name)
            with ui.element("dd"):
                ui.label(_text(value))


def _column(column: Column) -> dict[str, Any]:
    classes = " ".join(
        word
        for word, is_set in (("rg-wide", column.is_wide), ("rg-mono", column.is_mono))
        if is_set
    )
    return {
        "name": column.name,
        "label": column.label,
        "field": column.name,
        "align": "right" if column.is_number else "left",
        "classes": classes,
        "headerClasses": "rg-wide" if column.is_wide else "",
    }


def _text(value: Any) -> str:
    if value is None or value == "":
        return "-"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _attribute(text: str) -> str:
    """Our own words in a template: no name of a server is among them."""
    assert not set("<>\"'{}&") & set(text), text
    return text
