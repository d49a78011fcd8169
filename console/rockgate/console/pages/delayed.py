"""Delayed messages: what is due when, the next ones, and cancelling or delivering one."""

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
from rockgate.console.widgets.charts import bar_chart, draw, draw_bars, line_chart
from rockgate.console.widgets.frame import link_to, page, session
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.times import ago_text, exact, now_ms, reader_zone, time_text
from rockgate.protocol.remoting.bodies.admin import DUE_NAMES, Delayed

REFRESH_S: Final = 4.0
LIMIT: Final = 50
READ_MAX: Final = 20_000
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


class Span(NamedTuple):
    """How much of the future the timeline shows."""

    label: str
    bucket_ms: int
    bucket_count: int


MINUTE_MS: Final = 60_000
SPANS: Final = {
    "hour": Span("Next hour", MINUTE_MS, 60),
    "day": Span("Next day", 20 * MINUTE_MS, 72),
    "month": Span("Next 30 days", 12 * 60 * MINUTE_MS, 60),
    "year": Span("Next year", 7 * 24 * 60 * MINUTE_MS, 53),
}
BARS_MAX: Final = 8
"""Topics with a colour of their own."""
OTHERS: Final = "all others"


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
def delayed(topic: str = "", due: int = -1, sequence: int = -1, span: str = "hour") -> None:
    """What is due when, counts by topic, and the next ones."""
    state = {"span": span if span in SPANS else "hour"}
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
            bucket_ms=SPANS[state["span"]].bucket_ms,
            bucket_count=SPANS[state["span"]].bucket_count,
        )
        ids = [each.id for each in found.soonest]
        details = await wire.describe(remoting, ids) if ids else {}
        return Page(found, details)

    if topic:
        with ui.row().classes("rg-row"):
            ui.label(f"Of {topic}.")
            ui.link("All topics", "/delayed").classes("rg-link")
    zone = reader_zone()

    def turn(value: str) -> None:
        state["span"] = value
        ui.navigate.history.replace(link_to("delayed", topic=topic or None, span=value))
        live.reload()

    labels = {name: each.label for name, each in SPANS.items()}
    ui.toggle(labels, value=state["span"], on_change=lambda e: turn(str(e.value))).props(
        'dense no-caps unelevated aria-label="Time that the timeline shows"'
    )
    with ui.element("div").classes("rg-charts"):
        chart = bar_chart("Due, by topic")
        history = line_chart("Waiting", ("waiting",), "messages")

    def show(found: Page) -> None:
        _draw_timeline(chart, found.overview, SPANS[state["span"]])
        samples = who.peer.history.samples
        waiting = [(each.at_ms, each.delayed) for each in samples if each.delayed is not None]
        draw(history, (waiting,), now_ms())
        _show(found, topic, zone)

    live = Live(lambda: ask_remoting(who, read), show, every_s=REFRESH_S)


def bars_of(overview: Overview, span: Span) -> dict[str, list[tuple[int, int]]]:
    """The bars of a timeline: the topics with most messages, and all others together."""
    by_name: dict[str, dict[int, int]] = {}
    for (topic, by), buckets in overview.timeline.items():
        counts = by_name.setdefault(topic or by, {})
        for bucket, count in buckets.items():
            counts[bucket] = counts.get(bucket, 0) + count
    names = sorted(by_name, key=lambda name: (-sum(by_name[name].values()), name))
    bars = {name: by_name[name] for name in names[:BARS_MAX]}
    for name in names[BARS_MAX:]:
        rest = bars.setdefault(OTHERS, {})
        for bucket, count in by_name[name].items():
            rest[bucket] = rest.get(bucket, 0) + count
    # Bars are stacked by their place in the list, so all have the same times.
    times = sorted({bucket for counts in bars.values() for bucket in counts})
    return {
        name: [(bucket * span.bucket_ms, counts.get(bucket, 0)) for bucket in times]
        for name, counts in bars.items()
    }


def _draw_timeline(chart: Any, overview: Overview, span: Span) -> None:
    first_ms = overview.now_ms // span.bucket_ms * span.bucket_ms
    last_ms = first_ms + span.bucket_count * span.bucket_ms
    draw_bars(chart, bars_of(overview, span), first_ms, last_ms, span.bucket_ms)


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
    who, zone = session(), reader_zone()

    async def read(remoting: Any) -> Delayed:
        found = await wire.describe(remoting, [id_], preview=PREVIEW, with_due=True)
        if id_ not in found:
            raise Missed(id_, "there is no such delayed message, or it was delivered")
        return found[id_]

    def show(found: Delayed) -> None:
        _details(who, found)
        if found.is_waiting and may_change():
            with ui.row().classes("rg-row"):
                button("Deliver it now", lambda: deliver(found), icon="send")
                button("Cancel it", lambda: cancel(found), icon="cancel", is_danger=True)

    async def deliver(found: Delayed) -> None:
        topic = found.message.topic if found.message else "its topic"
        due = f"{time_text(found.due_ms, zone)}, {ago_text(found.due_ms, now_ms())}"
        lines = [f"The message will be delivered to {topic} at once. It is due {due}."]
        if not await confirmed("Deliver this message now?", lines, "Deliver now"):
            return

        async def work() -> None:
            answer = await ask_remoting(who, lambda remoting: wire.deliver(remoting, id_))
            if not answer.is_delivered:
                raise Missed(id_, "it was delivered or cancelled before")

        await attempt(work, "Delivered.")
        await live.refresh()

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
