"""One message: its contents, headers, times, and where it is."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from rockgate.cli.admin import messages as wire
from rockgate.cli.admin import traces
from rockgate.cli.admin.messages import FoundMessage, StoredMessage
from rockgate.cli.admin.traces import Trace
from rockgate.cli.client.kafka.errors import ClientError, Missed
from rockgate.cli.text.values import size_text
from rockgate.console.content.encodings import Decoded, Encoding, as_hex, as_text, decode
from rockgate.console.content.masks import HIDDEN, fields_for, is_masked, masked
from rockgate.console.pages.delayed import ask_remoting
from rockgate.console.pages.messages import load_schemas
from rockgate.console.schemas.registry import id_of
from rockgate.console.session.sessions import Session
from rockgate.console.widgets.frame import link_to, page, session
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.times import exact, reader_zone, time_text

HEADERS: Final = (Column("name", "Header"), Column("value", "Value", is_mono=True))
TRACE: Final = (
    Column("at", "Time"),
    Column("what", "What"),
    Column("outcome", "Outcome"),
    Column("cost", "Took", is_number=True),
    Column("tries", "Retries", is_number=True, is_wide=True),
    Column("group", "Group"),
    Column("host", "Host", is_wide=True),
)
TRACE_S: Final = 5.0
ID: Final = "UNIQ_KEY"
DELAYS: Final = ("__STARTDELIVERTIME", "TIMER_DELIVER_MS", "TIMER_DELAY_MS", "TIMER_DELAY_SEC")


@page("/messages/{topic}/{partition}/{offset}", "Message")
def message(topic: str, partition: int, offset: int) -> None:
    """Reads the one message at an offset."""
    who = session()

    async def load() -> StoredMessage:
        async with who.peer.own_cluster() as cluster:
            found = await wire.one(cluster, (topic, partition), offset)
        if found is None:
            place = f"topic {topic} partition {partition} offset {offset}"
            raise Missed(place, "there is no message; it was deleted, or is not readable")
        await load_schemas(who, [found])
        return found

    with ui.row().classes("rg-row"):
        around = link_to(
            "messages", topic=topic, mode="offset", partition=partition, at=max(0, offset - 25)
        )
        for text, target in (
            ("Topic", link_to("topics", topic)),
            ("Before", link_to("messages", topic, partition, max(0, offset - 1))),
            ("After", link_to("messages", topic, partition, offset + 1)),
            ("Around it", around),
        ):
            ui.link(text, target).classes("rg-link")
    Live(load, lambda found: show(who, found))

    located: list[str] = []

    async def locate() -> FoundMessage | None:
        try:
            found = await load()
        except ClientError:
            # The part above says so.
            return None
        located[:] = _ids(found)
        if who.peer.offers.extras is not True or not found.key:
            return None
        key = found.key.decode("utf-8", "replace")
        same = await ask_remoting(who, lambda remoting: wire.by_key(remoting, topic, key))
        own = (each for each in same if each.message.place == found.place)
        at = next((each for each in own if each.message.offset == offset), None)
        if at is not None:
            located.append(at.message_id)
        return at

    Live(locate, _in_log)
    if who.peer.offers.extras is not False:
        Live(lambda: _traces(who, located), _trace, every_s=TRACE_S)


def _ids(found: StoredMessage) -> list[str]:
    """The id that its producer gave it, where readers of Kafka's wire see it."""
    return [
        (value or b"").decode("utf-8", "replace") for name, value in found.headers if name == ID
    ]


async def _traces(who: Session, ids: list[str]) -> list[Trace]:
    """What its clients wrote of it, if they trace."""
    if who.peer.offers.extras is not True or not ids:
        return []
    return list(await ask_remoting(who, lambda remoting: traces.of_message(remoting, ids[-1])))


def _trace(found: list[Trace]) -> None:
    if not found:
        return
    zone = reader_zone()
    ui.label("Trace").classes("rg-subtitle").props('role="heading" aria-level="2"')
    rows = [
        Row(
            str(number),
            {
                "at": time_text(each.at_ms, zone),
                "what": f"{each.what}, {each.detail}" if each.detail else each.what,
                "outcome": {None: None, True: "success", False: "failed"}[each.is_success],
                "cost": None if each.cost_ms < 0 else f"{each.cost_ms:,} ms",
                "tries": None if each.tries < 0 else each.tries,
                "group": each.group,
                "host": each.host,
            },
            titles={"at": exact(each.at_ms)},
        )
        for number, each in enumerate(found)
    ]
    grid(TRACE, rows, label="Trace")


def show(who: Session, found: StoredMessage) -> None:
    """The parts of a message."""
    fields = fields_for(found.topic, who.masks)
    zone = reader_zone()
    decoded = masked(decode(found.value, who.registry), fields)
    with ui.column().classes("rg-panel"):
        facts(
            [
                ("Topic", found.topic),
                ("Partition", found.partition),
                ("Offset", found.offset),
                ("Time", f"{time_text(found.timestamp_ms, zone)} ({exact(found.timestamp_ms)})"),
                ("Time is of", "the append" if found.is_append_time else "the producer"),
                ("Key", decode(found.key, who.registry).text if found.key is not None else None),
                ("Value", f"{size_text(len(found.value or b''))}, {decoded.encoding}"),
                *_schema(decoded),
                *_delays(found),
            ]
        )
    if who.registry is not None and who.registry.problem and id_of(found.value) is not None:
        problem = who.registry.problem
        ui.label(f"{problem[:1].upper()}{problem[1:]}.").classes("rg-quiet")
    _value(found.value, decoded, is_masked=bool(fields))
    rows = [
        Row(
            str(number),
            {
                "name": name,
                "value": HIDDEN if is_masked(name, fields) else decode(value).text,
            },
        )
        for number, (name, value) in enumerate(found.headers)
    ]
    ui.label("Headers").classes("rg-subtitle").props('role="heading" aria-level="2"')
    grid(HEADERS, rows, label="Headers", empty="No headers.")


def _in_log(found: FoundMessage | None) -> None:
    """What RocketMQ's listener knows of a message with a key."""
    if found is None:
        return
    zone = reader_zone()
    ui.label("In the log").classes("rg-subtitle").props('role="heading" aria-level="2"')
    with ui.column().classes("rg-panel"):
        facts(
            [
                ("Message id", found.message_id),
                ("Offset message id", found.offset_message_id),
                ("Position", found.position),
                ("Sent", f"{time_text(found.born_ms, zone)} ({exact(found.born_ms)})"),
                ("Stored", f"{time_text(found.stored_ms, zone)} ({exact(found.stored_ms)})"),
                ("Delivery", found.tries),
            ]
        )


def _schema(decoded: Decoded) -> list[tuple[str, int]]:
    return [] if decoded.schema_id is None else [("Schema", decoded.schema_id)]


def _delays(found: StoredMessage) -> list[tuple[str, str]]:
    return [
        ("Delayed by", f"{name}={(value or b'').decode('utf-8', 'replace')}")
        for name, value in found.headers
        if name in DELAYS
    ]


def _value(data: bytes | None, decoded: Decoded, *, is_masked: bool) -> None:
    forms = {"auto": str(decoded.encoding)}
    if data and not is_masked:
        # Other forms would show what a mask hides.
        if decoded.encoding is not Encoding.TEXT:
            forms["text"] = "as text"
        forms["hex"] = "as hex"

    def chosen(form: str) -> None:
        found = decoded
        if form == "hex":
            found = as_hex(data or b"")
        elif form == "text":
            found = as_text(data or b"") or as_hex(data or b"")
        text.text = found.text
        note.text = "Cut: the value is larger." if found.is_cut else ""

    with ui.row().classes("rg-row"):
        ui.label("Value").classes("rg-subtitle").props('role="heading" aria-level="2"')
        if len(forms) > 1:
            shape = ui.toggle(forms, value="auto", on_change=lambda e: chosen(str(e.value)))
            shape.props("dense no-caps unelevated")
    with ui.element("pre").classes("rg-value").props('tabindex="0" aria-label="Value"'):
        text = ui.label(decoded.text)
    note = ui.label("Cut: the value is larger." if decoded.is_cut else "").classes("rg-quiet")
