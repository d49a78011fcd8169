"""Delayed messages: how many are due when, the next ones, and cancelling one."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from nicegui import ui

from rockgate.cli.client.kafka.errors import ClientError, Missed
from rockgate.cli.client.remoting import delays as wire
from rockgate.cli.client.remoting.delays import Cursor, Overview
from rockgate.cli.text.values import size_text
from rockgate.console.content.encodings import decode
from rockgate.console.content.masks import HIDDEN, fields_for, is_masked, masked
from rockgate.console.session.sessions import Session
from rockgate.console.widgets.actions import attempt, button, confirmed, may_change
from rockgate.console.widgets.frame import link_to, page, session
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.times import ago_text, exact, reader_zone, time_text
from rockgate.protocol.remoting.bodies.admin import DUE_NAMES, Delayed

REFRESH_S: Final = 3.0
LIMIT: Final = 50
READ_MAX: Final = 100_000
"""With more waiting, target topics are not read for the table by topic."""
PREVIEW: Final = 4_096
DUE_LABELS: Final = dict(
    zip(
        DUE_NAMES,
        ("overdue", "within a minute", "within an hour", "within a day", "later"),
        strict=True,
    )
)
COUNTS: Final = (
    Column("topic", "Topic"),
    Column("by", "Delayed by"),
    *(Column(name, label, is_number=True, is_wide=True) for name, label in DUE_LABELS.items()),
    Column("all", "All", is_number=True),
)
SOONEST: Final = (
    Column("due", "Due"),
    Column("left", "In"),
    Column("topic", "Topic"),
    Column("by", "Delayed by", is_wide=True),
    Column("size", "Size", is_number=True, is_wide=True),
    Column("id", "Id", is_mono=True, is_wide=True),
)


class Page(NamedTuple):
    """The overview, and the next ones in detail."""

    overview: Overview
    details: dict[str, Delayed]


async def ask_remoting(who: Session, work: Any) -> Any:
    """What `work` returns for RocketMQ's listener, which is dialled again after a failure."""
    try:
        return await work(who.peer.remoting)
    except ClientError:
        await who.peer.lose_remoting()
        raise


@page("/delayed", "Delayed messages")
def delayed(topic: str = "", due: int = -1, sequence: int = -1) -> None:
    """Counts by topic and due time, and the next ones."""
    who, after = session(), Cursor(due, sequence) if due >= 0 else None

    async def read(remoting: Any) -> Page:
        waiting = await wire.waiting_count(remoting)
        found = await wire.overview(
            remoting,
            limit=LIMIT,
            after=after,
            topic=topic or None,
            by_target=waiting <= READ_MAX,
            progress=lambda _, __: None,
        )
        ids = [each.id for each in found.soonest]
        details = await wire.describe(remoting, ids) if ids else {}
        return Page(found, details)

    if topic:
        with ui.row().classes("rg-row"):
            ui.label(f"Of {topic}.")
            ui.link("All topics", "/delayed").classes("rg-link")
    zone = reader_zone()
    Live(
        lambda: ask_remoting(who, read),
        lambda found: _show(found, topic, zone),
        every_s=REFRESH_S,
    )


def _show(found: Page, topic: str, zone: Any) -> None:
    overview = found.overview
    with ui.element("div").classes("rg-tiles"):
        sums = [sum(each.due[i] for each in overview.counts) for i in range(len(DUE_NAMES))]
        for name, value in zip(DUE_LABELS.values(), sums, strict=True):
            with ui.column().classes("rg-tile"):
                ui.label(f"{value:,}").classes("rg-tile-value")
                ui.label(f"due {name}" if name != "overdue" else name).classes("rg-tile-name")
    rows = [
        Row(
            f"{each.topic}-{each.by}",
            {
                "topic": each.topic,
                "by": each.by,
                **dict(zip(DUE_NAMES, each.due, strict=True)),
                "all": each.waiting,
            },
            {"topic": link_to("delayed", topic=each.topic)} if each.topic else {},
        )
        for each in overview.counts
    ]
    grid(COUNTS, rows, label="Delayed messages by topic", empty="No delayed messages.")
    if not overview.soonest:
        return
    ui.label("Next").classes("rg-subtitle").props('role="heading" aria-level="2"')
    soonest = []
    for place in overview.soonest:
        detail = found.details.get(place.id)
        message = detail.message if detail is not None else None
        soonest.append(
            Row(
                place.id,
                {
                    "due": time_text(place.due_ms, zone),
                    "left": ago_text(place.due_ms, overview.now_ms),
                    "topic": message.topic if message else None,
                    "by": detail.origin if detail else None,
                    "size": size_text(message.size) if message else None,
                    "id": place.id,
                },
                {"due": link_to("delayed", place.id)},
                {"due": exact(place.due_ms)},
            )
        )
    grid(SOONEST, soonest, label="The next delayed messages")
    if overview.has_more:
        last = overview.soonest[-1]
        ui.link(
            "Later ones",
            link_to("delayed", topic=topic or None, due=last.due_ms, sequence=last.sequence),
        ).classes("rg-link")


@page("/delayed/{id_:path}", "Delayed message")
def one(id_: str) -> None:
    """One message that waits, or waited."""
    who = session()

    async def read(remoting: Any) -> Delayed:
        found = await wire.describe(remoting, [id_], preview=PREVIEW, with_due=True)
        if id_ not in found:
            raise Missed(id_, "there is no such delayed message, or it was delivered")
        return found[id_]

    def show(found: Delayed) -> None:
        _details(who, found)
        if found.is_waiting and may_change():
            button("Cancel it", lambda: cancel(found), icon="cancel", is_danger=True)

    async def cancel(found: Delayed) -> None:
        topic = found.message.topic if found.message else "its topic"
        lines = [f"The message will never be delivered to {topic}."]
        if not await confirmed("Cancel this message?", lines, "Cancel the message"):
            return

        async def work() -> None:
            answer = await ask_remoting(who, lambda remoting: wire.cancel(remoting, id_))
            if not answer.is_cancelled:
                raise Missed(id_, "it was delivered or cancelled before")

        await attempt(work, "Cancelled.")
        await live.refresh()

    live = Live(lambda: ask_remoting(who, read), show, every_s=REFRESH_S)


def _details(who: Session, found: Delayed) -> None:
    message, zone = found.message, reader_zone()
    pairs: list[tuple[str, Any]] = [
        ("Id", found.id),
        ("State", "waiting" if found.is_waiting else "delivered or cancelled"),
        ("Due", f"{time_text(found.due_ms, zone)} ({exact(found.due_ms)})"),
        ("Delayed by", found.origin),
    ]
    if message is not None:
        pairs += [("Topic", message.topic), ("Keys", message.keys), ("Tag", message.tags)]
        pairs.append(("Size", size_text(message.size)))
    with ui.column().classes("rg-panel"):
        facts(pairs)
        if found.delivered:
            topic, partition, offset = found.delivered.rsplit("/", 2)
            target = link_to("messages", topic, partition, offset)
            ui.link(f"Delivered as {found.delivered}", target).classes("rg-link")
    if message is not None:
        body_of(who, message)


def body_of(who: Session, message: Any) -> None:
    """The begin of the body of a message, and its properties."""
    fields = fields_for(message.topic, who.masks)
    decoded = masked(decode(message.body), fields)
    with ui.element("pre").classes("rg-value").props('tabindex="0" aria-label="Body"'):
        ui.label(decoded.text)
    if message.body is not None and len(message.body) < message.size:
        ui.label(f"The first {len(message.body):,} of {message.size:,} bytes.").classes("rg-quiet")
    rows = [
        Row(name, {"name": name, "value": HIDDEN if is_masked(name, fields) else value})
        for name, value in message.properties
    ]
    columns = (Column("name", "Property"), Column("value", "Value", is_mono=True))
    grid(columns, rows, label="Properties", empty="No properties.")
