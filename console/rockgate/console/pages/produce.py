"""Sending a message over either wire."""

from __future__ import annotations

import time
from typing import Any, Final

from nicegui import ui

from rockgate.cli.admin.sending import NewMessage, SentMessage, send_kafka, send_remoting
from rockgate.cli.client.kafka.errors import ClientError, Unusable
from rockgate.cli.text import values
from rockgate.console.session.sessions import Session
from rockgate.console.widgets.actions import attempt, button
from rockgate.console.widgets.frame import link_to, page, session
from rockgate.console.widgets.times import reader_zone, time_text

WIRES: Final = {"kafka": "Kafka", "remoting": "RocketMQ"}
VALUE_CHARS_MAX: Final = 1 << 20


@page("/produce", "Produce")
def produce(topic: str = "") -> None:
    """A form for one message."""
    who = session()
    if who.is_read_only:
        ui.label("The console is read-only.").classes("rg-quiet")
        return
    fields: dict[str, Any] = {}
    with ui.column().classes("rg-panel"):
        with ui.row().classes("rg-row"):
            fields["topic"] = _input("Topic", topic).classes("rg-grow")
            fields["wire"] = ui.select(WIRES, value="kafka", label="Over").props("outlined dense")
            fields["partition"] = _input("Partition").style("width:110px")
        with ui.row().classes("rg-row"):
            fields["key"] = _input("Key").classes("rg-grow")
            fields["tag"] = _input("Tag")
            fields["delay"] = _input("Deliver after (10s), or at (2026-01-31T12:00Z)")
            fields["delay"].classes("rg-grow").visible = who.peer.offers.extras is not False
        fields["value"] = ui.textarea("Value").classes("rg-live rg-mono")
        fields["value"].props(f"outlined rows=8 maxlength={VALUE_CHARS_MAX}")
        fields["headers"] = ui.textarea("Headers, NAME=VALUE on each line").classes("rg-live")
        fields["headers"].props("outlined dense autogrow rows=2")
        with ui.row().classes("rg-buttons"):
            null = ui.checkbox("null value (a tombstone)")
            button("Send", lambda: _send(who, fields, null, sent), icon="send")
    sent = ui.column().classes("rg-live").props('role="status"')


def _input(label: str, value: str = "") -> Any:
    return ui.input(label, value=value).props("outlined dense")


async def _send(who: Session, fields: dict[str, Any], null: Any, sent: Any) -> None:
    answers: list[SentMessage] = []

    async def work() -> None:
        message = _message({name: str(each.value or "") for name, each in fields.items()}, null)
        if fields["wire"].value == "kafka":
            answers.append(await send_kafka(who.peer.cluster, message))
            return
        try:
            answers.append(await send_remoting(who.peer.remoting, message))
        except ClientError:
            await who.peer.lose_remoting()
            raise

    if await attempt(work):
        _report(sent, answers[0], now_ms=int(time.time() * 1000))


def _message(given: dict[str, str], null: Any) -> NewMessage:
    """The form as a message; ValueError or Unusable says what is wrong."""
    if not given["topic"].strip():
        raise Unusable("Enter a topic")
    partition = given["partition"].strip()
    if partition and not (partition.isascii() and partition.isdecimal() and len(partition) < 7):
        raise Unusable(f"The partition must be a number, not {partition!r}")
    lines = [line for line in given["headers"].splitlines() if line.strip()]
    return NewMessage(
        topic=given["topic"].strip(),
        value=None if null.value else given["value"].encode(),
        key=given["key"] or None,
        headers=[(name, value or "") for name, value in values.pairs(lines)],
        tag=given["tag"].strip() or None,
        deliver_ms=_deliver_ms(given["delay"].strip()),
        partition=int(partition) if partition else None,
    )


def _deliver_ms(text: str) -> int | None:
    if not text:
        return None
    try:
        return int(time.time() * 1000) + values.duration_ms(text)
    except ValueError:
        return values.time_ms(text)


def _report(sent: Any, answer: SentMessage, *, now_ms: int) -> None:
    with sent, ui.row().classes("rg-row"):
        ui.label(time_text(now_ms, reader_zone())).classes("rg-quiet")
        text = f"Sent to {answer.topic}, partition {answer.partition}"
        if answer.offset >= 0:
            text += f", offset {answer.offset:,}"
            target = link_to("messages", answer.topic, answer.partition, answer.offset)
            ui.link(text, target).classes("rg-link")
        else:
            ui.label(text)
        if answer.message_id:
            ui.label(answer.message_id).classes("rg-mono")
