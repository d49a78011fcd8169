"""Messages of a topic: the newest, from an offset or a time, by key or id, and as they arrive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from nicegui import background_tasks, ui

from rockgate.cli.admin import messages as wire
from rockgate.cli.admin.messages import StoredMessage
from rockgate.cli.client.admin.offsets import Bounds
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import ClientError, Unusable
from rockgate.cli.client.kafka.view import Place
from rockgate.cli.text import values
from rockgate.console.content.encodings import decode
from rockgate.console.content.filters import Filter, compiled
from rockgate.console.content.masks import fields_for, masked
from rockgate.console.schemas.registry import id_of
from rockgate.console.session.sessions import Session
from rockgate.console.widgets.frame import link_to, page, session
from rockgate.console.widgets.grid import Column, Row, grid
from rockgate.console.widgets.times import exact, reader_zone, time_text

MODES: Final = {
    "newest": "Newest",
    "offset": "From an offset",
    "time": "From a time",
    "tail": "As they arrive",
    "key": "By key",
    "id": "By message id",
}
INDEXED: Final = ("key", "id")
COUNT: Final = 50
COUNT_MAX: Final = 500
SCANNED_MAX: Final = 1_000_000
PREVIEW_CHARS: Final = 160
DRAW_S: Final = 0.5
COLUMNS: Final = (
    Column("time", "Time"),
    Column("partition", "Partition", is_number=True, is_wide=True),
    Column("offset", "Offset", is_number=True),
    Column("key", "Key", is_mono=True, is_wide=True),
    Column("value", "Value", is_mono=True),
    Column("size", "Size", is_number=True, is_wide=True),
)
FIELDS: Final = ("mode", "at", "partition", "key", "header", "value", "sql", "count")


@dataclass(slots=True)
class Search:
    """What is looked for, and what was found."""

    topic: str = ""
    mode: str = "newest"
    at: str = ""
    partition: str = ""
    key: str = ""
    header: str = ""
    value: str = ""
    sql: str = ""
    count: int = COUNT
    found: list[StoredMessage] = field(default_factory=list)
    scanned: int = 0

    def address(self) -> str:
        """The address of this search."""
        plain = Search()
        given = {name: getattr(self, name) for name in FIELDS}
        changed = {name: v for name, v in given.items() if v != getattr(plain, name)}
        return link_to("messages", topic=self.topic or None, **changed)


@page("/messages", "Messages")
def messages(
    topic: str = "",
    mode: str = "newest",
    at: str = "",
    partition: str = "",
    key: str = "",
    header: str = "",
    value: str = "",
    sql: str = "",
    count: int = COUNT,
) -> None:
    """A form, and the table of what it finds."""
    search = Search(
        topic=topic,
        mode=mode if mode in MODES else "newest",
        at=at,
        partition=partition,
        key=key,
        header=header,
        value=value,
        sql=sql,
        count=max(1, min(count, COUNT_MAX)),
    )
    MessagesPage(session(), search).build()


class MessagesPage:
    """One reader's search; a new one ends the one before."""

    def __init__(self, who: Session, search: Search) -> None:
        self._who = who
        self._search = search
        self._zone = reader_zone()
        self._task: asyncio.Task[Any] | None = None
        self._drawn_at = 0.0

    def build(self) -> None:
        """The form, and a first search if there is a topic."""
        self._form()
        self._status = ui.label().classes("rg-quiet").props('role="status"')
        self._problem = ui.label().classes("rg-problem").props('role="alert"')
        self._problem.visible = False
        self._results = ui.column().classes("rg-live")
        ui.context.client.on_delete(self._stop)
        if self._search.topic:
            ui.timer(0.01, self.run, once=True)

    def _form(self) -> None:
        search = self._search
        with ui.column().classes("rg-panel"):
            with ui.row().classes("rg-row"):
                self._input("topic", "Topic").classes("rg-grow")
                modes = ui.select(MODES, value=search.mode, label="Show")
                modes.props("outlined dense").bind_value(search, "mode")
                self._input("at", "Offset, time, key or id")
                self._input("partition", "Partition").style("width:90px")
            with ui.row().classes("rg-row"):
                self._input("key", "Key contains")
                self._input("header", "Header NAME=PART")
                self._input("value", "Value contains").classes("rg-grow")
                self._input("sql", "SQL92, as in price > 10 AND kind = 'a'").classes("rg-grow")
            with ui.row().classes("rg-row"):
                show = ui.button("Search", icon="search", on_click=self.run)
                show.props("unelevated no-caps dense").classes("rg-button")
                self._halt = ui.button("Stop", on_click=self._stop)
                self._halt.props("flat no-caps dense")
                self._halt.visible = False

    def _input(self, name: str, label: str) -> Any:
        field_ = ui.input(label, value=str(getattr(self._search, name)))
        field_.on_value_change(lambda e: setattr(self._search, name, str(e.value or "").strip()))
        field_.on("keydown.enter", self.run)
        return field_.props("outlined dense")

    async def run(self) -> None:
        """Search anew."""
        self._stop()
        self._search.found, self._search.scanned = [], 0
        ui.navigate.history.replace(self._search.address())
        self._task = background_tasks.create(self._searching())

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _searching(self) -> None:
        search = self._search
        self._problem.visible, self._halt.visible = False, True
        self._status.text = "Searching."
        ended = "Stopped."
        try:
            wanted = compiled(
                key=search.key,
                header=search.header,
                value=search.value,
                sql=search.sql,
                fields=fields_for(search.topic, self._who.masks),
                registry=self._who.registry,
            )
            if search.mode in INDEXED:
                await self._by_index(wanted)
            else:
                async with self._who.peer.own_cluster() as cluster:
                    await self._scan(cluster, wanted)
            ended = ""
        except (ClientError, ValueError) as error:
            text = str(error)
            self._problem.text = f"{text[:1].upper()}{text[1:]}"
            self._problem.visible, ended = True, ""
        finally:
            self._halt.visible = False
            self._draw(ended, is_last=True)

    async def _by_index(self, wanted: Filter) -> None:
        search, remoting = self._search, self._who.peer.remoting
        if not search.at:
            raise Unusable("Enter the key or the id to look for")
        try:
            found = await wire.by_key(remoting, search.topic, search.at, is_id=search.mode == "id")
            if search.mode == "id" and not found and len(search.at) in (32, 56):
                one = await wire.by_location(remoting, search.at)
                found = [] if one is None else [one]
        except ClientError:
            await self._who.peer.lose_remoting()
            raise
        search.scanned = len(found)
        await load_schemas(self._who, [each.message for each in found])
        search.found = [each.message for each in found if wanted.passes(each.message)]

    async def _scan(self, cluster: Cluster, wanted: Filter) -> None:
        search = self._search
        places = await wire.places_of(cluster, search.topic)
        if search.partition:
            places = [(search.topic, _number("Partition", search.partition))]
        known = await wire.limits(cluster, places)
        async with aclosing(await self._source(cluster, known)) as source:
            async for found in source:
                search.scanned += len(found)
                if self._results.is_deleted:
                    # The session is over.
                    return
                await load_schemas(self._who, found)
                for each in found:
                    if wanted.passes(each):
                        search.found.append(each)
                self._trim()
                if search.mode not in ("newest", "tail") and len(search.found) >= search.count:
                    return
                if search.mode != "tail" and search.scanned >= SCANNED_MAX:
                    return
                self._draw("")
                await asyncio.sleep(0)

    async def _source(
        self, cluster: Cluster, known: dict[Place, Bounds]
    ) -> AsyncGenerator[list[StoredMessage], None]:
        search = self._search
        if search.mode == "tail":
            return wire.follow(cluster, known)
        if search.mode == "offset":
            starts = wire.at_offset(known, _number("Offset", search.at))
        elif search.mode == "time":
            starts = await wire.at_time(cluster, known, values.time_ms(search.at))
        else:
            is_filtered = search.key or search.header or search.value or search.sql
            starts = wire.newest(known, SCANNED_MAX if is_filtered else search.count)
        return wire.read(cluster, starts, known)

    def _trim(self) -> None:
        """Only what is on the page is retained."""
        search = self._search
        if search.mode in ("newest", "tail"):
            search.found.sort(key=lambda each: (-each.timestamp_ms, each.partition, -each.offset))
        del search.found[search.count :]

    def _draw(self, ended: str, *, is_last: bool = False) -> None:
        now = time.monotonic()
        if not is_last and now - self._drawn_at < DRAW_S:
            return
        self._drawn_at = now
        search = self._search
        said = f"{len(search.found):,} shown of {search.scanned:,} read. {ended}"
        if self._status.text == said and not is_last:
            return
        self._status.text = said
        if ui.context.slot_stack and self._results.is_deleted:
            return
        self._results.clear()
        with self._results:
            grid(
                COLUMNS,
                [self._row(each) for each in search.found],
                label="Messages",
                empty="No messages.",
            )

    def _row(self, each: StoredMessage) -> Row:
        fields = fields_for(each.topic, self._who.masks)
        registry = self._who.registry
        value = masked(decode(each.value, registry), fields)
        key = decode(each.key, registry).text if each.key is not None else None
        link = link_to("messages", each.topic, each.partition, each.offset)
        return Row(
            f"{each.partition}-{each.offset}",
            {
                "time": time_text(each.timestamp_ms, self._zone),
                "partition": each.partition,
                "offset": each.offset,
                "key": None if key is None else key[:PREVIEW_CHARS],
                "value": " ".join(value.text[: 4 * PREVIEW_CHARS].split())[:PREVIEW_CHARS],
                "size": values.size_text(each.size),
            },
            {"offset": link, "time": link},
            {"time": exact(each.timestamp_ms), "value": str(value.encoding)},
        )


async def load_schemas(who: Session, found: Iterable[StoredMessage]) -> None:
    """Have the schemas that messages name ready, if there is a registry."""
    if who.registry is None:
        return
    named = {id_of(data) for each in found for data in (each.key, each.value)}
    await who.registry.load(each for each in named if each is not None)


def _number(what: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ValueError(f"{what} must be a number, not {text!r}")
    return int(text)
