"""`rockgate find`: messages of a topic by key, by id or by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rockgate.cli.app import completion, runner

if TYPE_CHECKING:
    from rockgate.cli.admin.messages import FoundMessage, StoredMessage
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.remoting.connection import RemotingConnection

EXAMPLES = """
[bold]Examples[/bold]

rockgate find orders --key 7

rockgate find orders --key 7 --since 2h --json

rockgate find orders --time 2026-01-31T12:00:00Z

rockgate find orders --id 7F0000010007...0001

rockgate find orders --id orders/0/1500

[bold]How it finds[/bold]

--key asks the server's key index if the topic has the config message.index=true; it reads the topic
otherwise, which takes as long as the topic is large. --scan reads it in any case: the index does
not have what was sent before the config was set. --id takes the id that a RocketMQ producer gave
or got, or TOPIC/PARTITION/OFFSET. --time finds the first message of each partition at or after it.

[bold]Exit status[/bold]

0: found. 1: not found, or rejected by the server. 2: usage error. 3: server unreachable.
"""
_LOCATION_DIGITS: Final = (32, 56)
"""An id that names a place in the log: an address of IPv4 or IPv6 and the position, in hex."""

Topic = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=completion.topics)]


def find(
    topic: Topic,
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="Messages with this key, oldest first.")
    ] = None,
    id_: Annotated[str | None, typer.Option("--id", metavar="ID", help="The message.")] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The first messages from a time on, or 2h ago."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With --key, only from this time on, or 2h ago."),
    ] = None,
    scan: Annotated[
        bool, typer.Option("--scan", help="With --key, read the topic even if it has an index.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="Maximum number of messages.")
    ] = 64,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Find messages by key, id or time."""
    if sum(each is not None for each in (key, id_, time)) != 1:
        runner.usage("Give one of --key, --id and --time.")
    if (since is not None or scan) and key is None:
        runner.usage("--since and --scan go with --key.")
    since_ms = None if since is None else runner.checked("--since", _time_ms, since)
    time_ms = None if time is None else runner.checked("--time", _time_ms, time)

    async def work(cluster: Cluster, remoting: RemotingConnection) -> list[dict[str, Any]]:
        if time_ms is not None:
            return _rows(await _by_time(cluster, topic, time_ms))
        if id_ is not None:
            return await _by_id(cluster, remoting, topic, id_)
        wanted = _Wanted(key=key or "", since_ms=since_ms, limit=limit, is_read=scan)
        return await _by_key(cluster, remoting, topic, wanted)

    rows = runner.run_both(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    _finish(topic, rows, is_json=json)


# How


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Which messages of a key to find, and whether by reading the topic."""

    key: str
    since_ms: int | None
    limit: int
    is_read: bool


async def _by_key(
    cluster: Cluster, remoting: RemotingConnection, topic: str, wanted: _Wanted
) -> list[dict[str, Any]]:
    import os

    from rockgate.cli.admin import message_search, messages, topic_settings
    from rockgate.cli.text import streams, tables

    await cluster.topics([topic])
    indexed = topic_settings.MESSAGE_INDEX
    key, since_ms, limit = wanted.key, wanted.since_ms, wanted.limit
    if not wanted.is_read and await topic_settings.value_or_none(cluster, topic, indexed) == "true":
        found = await messages.by_key(remoting, _stored_name(topic), key)
        if len(found) < messages.FOUND_MAX or limit <= len(found):
            late = [e for e in found if since_ms is None or e.message.timestamp_ms >= since_ms]
            return [_found_fields(each, topic) for each in late[:limit]]
    meter = streams.Meter("Read", is_visible=tables.is_watched())
    try:
        read = await message_search.by_reading(
            cluster, topic, os.fsencode(key), since_ms=since_ms, limit=limit, progress=meter.add
        )
    finally:
        meter.clear()
    return _rows(read)


async def _by_id(
    cluster: Cluster, remoting: RemotingConnection, topic: str, id_: str
) -> list[dict[str, Any]]:
    from rockgate.cli.admin import messages

    place = _place(topic, id_)
    if place is not None:
        await cluster.topics([topic])
        found = await messages.one(cluster, (topic, place[0]), place[1])
        return _rows([] if found is None else [found])
    if _names_a_location(id_):
        located = await messages.by_location(remoting, id_)
        if located is not None and located.message.topic == _stored_name(topic):
            return [_found_fields(located, topic)]
    by_id = await messages.by_key(remoting, _stored_name(topic), id_, is_id=True)
    return [_found_fields(each, topic) for each in by_id]


async def _by_time(cluster: Cluster, topic: str, time_ms: int) -> list[StoredMessage]:
    from rockgate.cli.admin import messages

    known = await messages.limits(cluster, await messages.places_of(cluster, topic))
    starts = await messages.at_time(cluster, known, time_ms)
    found = []
    for place, offset in sorted(starts.items()):
        if offset < known[place].end:
            message = await messages.one(cluster, place, offset)
            if message is not None:
                found.append(message)
    return found


def _time_ms(text: str) -> int:
    """A time, or how long ago it was."""
    from time import time

    from rockgate.cli.text import values

    try:
        return values.time_ms(text)
    except ValueError:
        return int(time() * 1000) - values.duration_ms(text)


def _stored_name(topic: str) -> str:
    from rockgate.gateway.kafka.request.names import to_store

    return to_store(topic)


def _names_a_location(id_: str) -> bool:
    is_hex = all(each in "0123456789abcdefABCDEF" for each in id_)
    return is_hex and len(id_) in _LOCATION_DIGITS


def _place(topic: str, id_: str) -> tuple[int, int] | None:
    """Partition and offset of TOPIC/PARTITION/OFFSET, or of PARTITION/OFFSET."""
    parts = id_.removeprefix(f"{topic}/").split("/")
    if len(parts) != 2 or not all(each.isascii() and each.isdigit() for each in parts):
        return None
    return int(parts[0]), int(parts[1])


# What is printed


def _rows(found: Sequence[StoredMessage]) -> list[dict[str, Any]]:
    return [_fields(each) for each in found]


def _fields(message: StoredMessage) -> dict[str, Any]:
    from rockgate.cli.text import records

    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
        **records.content_fields(message.key, message.value, message.headers),
    }


def _found_fields(found: FoundMessage, topic: str) -> dict[str, Any]:
    return {
        **_fields(found.message),
        "topic": topic,
        "message_id": found.message_id,
        "offset_message_id": found.offset_message_id,
        "position": found.position,
        "born_ms": found.born_ms,
        "tries": found.tries,
    }


def _finish(topic: str, rows: list[dict[str, Any]], *, is_json: bool) -> None:
    from rockgate.cli.client.kafka.errors import ClientError, Missed
    from rockgate.cli.text import tables, values

    def show() -> None:
        if rows:
            tables.table(
                ("partition", "offset", "time", "key", "value"),
                [
                    (
                        row["partition"],
                        row["offset"],
                        values.time_text(row["timestamp_ms"]),
                        _content(row, "key"),
                        _content(row, "value"),
                    )
                    for row in rows
                ],
            )

    errors: list[ClientError] = []
    if not rows:
        errors.append(Missed(topic, "no such message"))
    runner.finish({"messages": rows}, errors, is_json=is_json, show=show)


def _content(row: dict[str, Any], name: str) -> str | None:
    """A key or value for a table: its beginning."""
    text: str | None = row.get(f"{name}_base64", row.get(name))
    return text if text is None or len(text) <= 60 else f"{text[:59]}…"
