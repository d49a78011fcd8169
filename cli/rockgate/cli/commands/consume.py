"""`rockgate consume`: print records, alone or as a member of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner

if TYPE_CHECKING:
    from rockgate.cli.client.consume.fetcher import Chunk
    from rockgate.cli.client.consume.reader import Plan, Start, Write
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.text.streams import Meter
    from rockgate.protocol.kafka.records.record import Record

EXAMPLES = """
[bold]Examples[/bold]

rockgate consume orders --from-beginning

rockgate consume orders --offset -10 --exit-at-end

rockgate consume orders --timestamp 2h --format '%d %p %o %k %v\\n'

rockgate consume orders --group billing --max-messages 100 --json

rockgate consume orders --partition 0 --offset 1500 --max-messages 1

[bold]Format[/bold]

%t topic, %p partition, %o offset, %k key, %v value, %h headers, %T timestamp in ms, %d timestamp,
%K key size, %V value size, %% a percent sign; \\n \\t \\r \\0 \\xNN.

[bold]Exit status[/bold]

0: done, including Ctrl-C while following. 1: rejected by the server. 2: usage error.
3: server unreachable.
"""

_WITH_GROUP = (
    "--offset, --timestamp and --partition cannot be combined with --group."
    " Move a group with `rockgate groups reset-offsets`."
)

Topics = Annotated[list[str], typer.Argument(metavar="TOPIC", autocompletion=completion.topics)]
FromBeginning = Annotated[
    bool,
    typer.Option(
        "--from-beginning", help="Start at the beginning; in a group, where nothing is committed."
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(
        "--offset", "-o", metavar="OFFSET", help="Start at N, -N (the last N), earliest or latest."
    ),
]
Timestamp = Annotated[
    str | None, typer.Option(metavar="TIME", help="Start at a time, or a duration ago (2h).")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        help="Read as a member of this group and commit offsets.",
        autocompletion=completion.groups,
    ),
]
Commit = Annotated[bool, typer.Option("--commit/--no-commit", help="Commit the group's offsets.")]
Partition = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", min=0, help="Only this partition; repeatable."),
]
MaxMessages = Annotated[
    int | None, typer.Option("--max-messages", "-n", min=1, help="Exit after this many records.")
]
Follow = Annotated[
    bool | None,
    typer.Option(
        "--follow/--exit-at-end",
        "-F/-e",
        help="Wait for new records, or exit at the current end.",
        show_default="follow",
    ),
]
IdleTimeout = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Exit after this long without records.")
]
Format = Annotated[str | None, typer.Option("--format", "-f", help="Output format; see below.")]
Keys = Annotated[bool, typer.Option("--keys", help="Print the key and a tab before the value.")]
Headers = Annotated[bool, typer.Option("--headers", help="Print headers and a tab first.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="Print raw bytes, even control sequences to a terminal.")
]
ReadCommitted = Annotated[
    bool, typer.Option("--read-committed", help="Hide uncommitted and aborted records.")
]
ClientId = Annotated[str, typer.Option(help="Client id, as seen in quotas and logs.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per record, lossless.")]


def consume(
    topics: Topics,
    from_beginning: FromBeginning = False,
    offset: Offset = None,
    timestamp: Timestamp = None,
    group: Group = None,
    commit: Commit = True,
    partition: Partition = None,
    max_messages: MaxMessages = None,
    follow: Follow = None,
    idle_timeout: IdleTimeout = None,
    format_: Format = None,
    keys: Keys = False,
    headers: Headers = False,
    raw: Raw = False,
    read_committed: ReadCommitted = False,
    client_id: ClientId = "rockgate",
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: Json = False,
) -> None:
    """Print records from topics.

    By default it starts at the end and waits for new records; with --exit-at-end it starts at the
    beginning. In a group it resumes at the committed offsets and commits what it has printed.
    Ctrl-C exits cleanly.
    """
    from rockgate.cli.client.consume import reader
    from rockgate.cli.text import tables, values

    if group is not None and (offset or timestamp or partition):
        runner.usage(_WITH_GROUP)
    stops_at_end = follow is False
    start = _start(from_beginning, offset, timestamp, is_from_start=stops_at_end and not group)
    idle_ms = (
        None
        if idle_timeout is None
        else runner.checked("--idle-timeout", values.duration_ms, idle_timeout)
    )
    plan = reader.Plan(
        topics=list(dict.fromkeys(topics)),
        partitions=sorted(set(partition)) if partition else None,
        start=start,
        group=group,
        record_count_max=max_messages,
        stops_at_end=stops_at_end,
        idle_s_max=None if idle_ms is None else idle_ms / 1000,
        is_committed=read_committed,
        commits=commit,
    )
    show = _shower(format_, keys=keys, headers=headers, is_json=json, is_raw=raw)
    is_endless = max_messages is None and not stops_at_end and idle_ms is None
    _hint(plan, is_endless=is_endless)
    meter = _meter()

    async def work(cluster: Cluster) -> None:
        try:
            await reader.Reader(cluster, plan, _writer(show, meter), note=_note(meter)).run()
        finally:
            meter.clear()
            if meter.record_count and tables.is_watched() and _is_redirected():
                tables.note(meter.text())

    runner.run(
        work,
        server=bootstrap_server,
        timeout=timeout,
        client_id=client_id,
        is_endless=is_endless,
    )


Show = Callable[["Chunk", "Record"], bytes]


def _start(
    from_beginning: bool, offset: str | None, timestamp: str | None, *, is_from_start: bool
) -> Start:
    from rockgate.cli.client.admin.offsets import EARLIEST, LATEST
    from rockgate.cli.client.consume import reader

    if [from_beginning, offset is not None, timestamp is not None].count(True) > 1:
        runner.usage("Give only one of --from-beginning, --offset and --timestamp.")
    if offset in ("earliest", "beginning"):
        from_beginning = True
    elif offset in ("latest", "end"):
        return reader.Start(time_ms=LATEST)
    elif offset is not None:
        number = runner.checked("--offset", _number, offset)
        if offset.startswith("-"):
            return reader.Start(before_end=-number)
        return reader.Start(offset=number)
    if timestamp is not None:
        return reader.Start(time_ms=runner.checked("--timestamp", _time, timestamp))
    return reader.Start(time_ms=EARLIEST if from_beginning or is_from_start else LATEST)


def _number(text: str) -> int:
    try:
        if len(text) > 20:
            raise ValueError
        return int(text)
    except ValueError:
        raise ValueError(f"expected a number, earliest or latest, got {text!r}") from None


def _time(text: str) -> int:
    """A time, or a duration before now."""
    from time import time

    from rockgate.cli.text.values import duration_ms, time_ms

    try:
        return max(0, int(time() * 1000) - duration_ms(text))
    except ValueError:
        return time_ms(text)


def _shower(text: str | None, *, keys: bool, headers: bool, is_json: bool, is_raw: bool) -> Show:
    """How a record is printed: raw, but escaped on a terminal unless --raw is given."""
    show = _bytes_of(text, keys=keys, headers=headers, is_json=is_json)
    return show if is_raw or _is_redirected() else harmless(show, is_json=is_json)


def _bytes_of(text: str | None, *, keys: bool, headers: bool, is_json: bool) -> Show:
    from rockgate.cli.text import records

    if is_json:
        if text is not None or keys or headers:
            runner.usage("--json prints every field; omit --format, --keys and --headers.")
        return lambda chunk, record: records.json_line(
            *chunk.place, record, is_append_time=chunk.is_append_time
        )
    if text is not None and (keys or headers):
        runner.usage("--format cannot be combined with --keys or --headers.")
    chosen = text or "".join(("%h\\t" * headers, "%k\\t" * keys, "%v\\n"))
    pieces = runner.checked("--format", records.parse_format, chosen)
    return lambda chunk, record: records.formatted(pieces, *chunk.place, record)


def harmless(show: Show, *, is_json: bool) -> Show:
    """Escape what a terminal would interpret, except line breaks and tabs."""
    from rockgate.gateway.runtime.quoting import for_terminal, json_for_terminal

    def escaped(chunk: Chunk, record: Record) -> bytes:
        text = show(chunk, record).decode("utf-8", "backslashreplace")
        return (json_for_terminal(text) if is_json else for_terminal(text, "\n\t")).encode()

    return escaped


def _writer(show: Show, meter: Meter) -> Write:
    from rockgate.cli.text.streams import Output

    output = Output()

    async def write(chunk: Chunk, records: Sequence[Record]) -> None:
        data = b"".join([show(chunk, record) for record in records])
        await output.write(data)
        meter.add(len(records), len(data))

    return write


def _hint(plan: Plan, *, is_endless: bool) -> None:
    """Explain at a terminal why nothing is printed yet."""
    import sys

    from rockgate.cli.client.admin.offsets import LATEST
    from rockgate.cli.text import tables

    if not (tables.is_watched() and sys.stdout.isatty() and is_endless) or plan.group:
        return
    start = plan.start
    if start.time_ms == LATEST and start.offset is None and start.before_end is None:
        tables.note(
            "Waiting for new records; --from-beginning prints older ones. Press Ctrl-C to exit."
        )


def _is_redirected() -> bool:
    import sys

    return not sys.stdout.isatty()


def _meter() -> Meter:
    """Prints the rate when the records themselves are not on the terminal."""
    from rockgate.cli.text import streams, tables

    return streams.Meter("Read", is_visible=tables.is_watched() and _is_redirected())


def _note(meter: Meter) -> Callable[[str], None]:
    from rockgate.cli.text import tables

    def note(text: str) -> Any:
        meter.clear()
        tables.note(f"rockgate: {text}")

    return note
