"""`rockgate produce`: send records from arguments, files or standard input."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.commands.produce.source import Source, check, raws, reader, with_delay

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.produce.producer import Producer
    from rockgate.cli.text.streams import Meter

RECORD_BYTES_MAX: Final = 256 << 20

EXAMPLES = """
[bold]Examples[/bold]

rockgate produce orders 'one espresso' --key 7 --header source=till

rockgate produce orders < lines.txt

rockgate produce orders --file orders.tsv --key-separator $'\\t' --compression zstd

rockgate produce orders --key 7 --null-value

rockgate produce reminders 'the tea is ready' --delay 4m

rockgate consume orders --from-beginning --exit-at-end --json | rockgate produce copy --jsonl

[bold]Exit status[/bold]

0: all acknowledged. 1: rejected by the server. 2: usage error. 3: server unreachable.
"""


class Acks(StrEnum):
    """Which replicas must have a record before it counts as sent."""

    ALL = "all"
    ONE = "1"
    NONE = "0"


class Codec(StrEnum):
    """How batches are compressed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


Topic = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=completion.topics)]
Values = Annotated[
    list[str] | None,
    typer.Argument(metavar="VALUE", help="Record values; default: lines of standard input."),
]
File = Annotated[
    list[Path] | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Read lines from a file; - for standard input."
    ),
]
Whole = Annotated[
    bool, typer.Option("--whole", help="Send each file, or all of standard input, as one record.")
]
Jsonl = Annotated[
    bool, typer.Option("--jsonl", help="Read JSON lines, as printed by consume --json.")
]
KeepPartitions = Annotated[
    bool, typer.Option("--keep-partitions", help="With --jsonl, keep each record's partition.")
]
Key = Annotated[str | None, typer.Option("--key", "-k", help="Key of every record.")]
KeySeparator = Annotated[
    str | None,
    typer.Option("--key-separator", "-K", help="Separator between key and value in each line."),
]
Header = Annotated[
    list[str] | None,
    typer.Option(
        "--header", "-H", metavar="NAME=VALUE", help="Header of every record; repeatable."
    ),
]
Partition = Annotated[
    int | None,
    typer.Option("--partition", "-p", min=0, help="Partition to send to, instead of by key."),
]
Timestamp = Annotated[
    str | None, typer.Option(metavar="TIME", help="Timestamp of every record, instead of now.")
]
Delay = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="Deliver every record this long after the server has stored it."
    ),
]
DeliverAt = Annotated[
    str | None, typer.Option(metavar="TIME", help="Deliver every record at this time.")
]
NullValue = Annotated[
    bool,
    typer.Option(
        "--null-value", help="Send empty values as null; with --key and no values, send one null."
    ),
]
AcksOption = Annotated[Acks, typer.Option(help="Required acknowledgements.")]
Compression = Annotated[Codec, typer.Option("--compression", "-z")]
Idempotent = Annotated[
    bool,
    typer.Option(
        "--idempotent/--no-idempotent", help="Write each record once, even if it is retried."
    ),
]
ClientId = Annotated[str, typer.Option(help="Client id, as seen in quotas and logs.")]


def produce(
    topic: Topic,
    values: Values = None,
    file: File = None,
    whole: Whole = False,
    jsonl: Jsonl = False,
    keep_partitions: KeepPartitions = False,
    key: Key = None,
    key_separator: KeySeparator = None,
    header: Header = None,
    partition: Partition = None,
    timestamp: Timestamp = None,
    delay: Delay = None,
    deliver_at: DeliverAt = None,
    null_value: NullValue = False,
    acks: AcksOption = Acks.ALL,
    compression: Compression = Codec.NONE,
    idempotent: Idempotent = True,
    client_id: ClientId = "rockgate",
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Send records to a topic and wait until they are acknowledged.

    Values come from the arguments, from files, or line by line from standard input. A missing topic
    is created if the server allows it.
    """
    from rockgate.cli.text import streams

    source = Source(
        values=values or [],
        files=file or [],
        is_whole=whole,
        read=reader(
            jsonl=jsonl,
            keep_partitions=keep_partitions,
            key=key,
            key_separator=key_separator,
            header=with_delay(header, delay, deliver_at),
            partition=partition,
            timestamp=timestamp,
            null_value=null_value,
        ),
        is_delayed=delay is not None or deliver_at is not None,
        has_one_of_nothing=null_value and key is not None and not values and not file,
    )
    check(source, jsonl=jsonl)
    meter = streams.Meter("Sent", is_visible=_is_watched(source))

    opened: list[Producer] = []

    async def work(cluster: Cluster) -> Producer:
        producer = _producer(cluster, topic, acks, compression, is_idempotent=idempotent)
        opened.append(producer)
        await _open(cluster, topic, producer, source)
        await _send(cluster, topic, producer, source, meter)
        return producer

    producer = runner.run(
        work,
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
        client_id=client_id,
        broken_off=lambda: _note_broken_off(topic, opened, meter),
    )
    meter.clear()
    _report(topic, producer, meter, is_json=json)


def _producer(
    cluster: Cluster, topic: str, acks: Acks, codec: Codec, *, is_idempotent: bool
) -> Producer:
    from rockgate.cli.client.produce.producer import Producer
    from rockgate.protocol.kafka.records.batch import Compression

    return Producer(
        cluster,
        topic,
        acks={Acks.ALL: -1, Acks.ONE: 1, Acks.NONE: 0}[acks],
        compression=Compression[codec.name],
        is_idempotent=is_idempotent,
        on_created=lambda count: _note_created(topic, count),
    )


async def _open(cluster: Cluster, topic: str, producer: Producer, source: Source) -> None:
    from rockgate.cli.admin import topic_settings

    if source.is_delayed:
        # Before the server creates the topic: it would deliver at once.
        await topic_settings.check_delays(cluster, topic)
    await producer.open()


async def _warn_of_headers_that_delay_nothing(cluster: Cluster, topic: str) -> None:
    """A topic that takes the headers of a delay as any others is often a mistake."""
    from rockgate.cli.admin import topic_settings
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.text import tables

    try:
        await topic_settings.check_delays(cluster, topic)
    except ClientError as error:
        tables.note(f"rockgate: Warning: {str(error).removesuffix('.')}.")


async def _send(
    cluster: Cluster, topic: str, producer: Producer, source: Source, meter: Meter
) -> None:
    from rockgate.cli.client.kafka.errors import Unusable
    from rockgate.protocol.remoting.properties import DELAYING

    is_checked = source.is_delayed
    number = 0
    async for each in raws(source):
        for raw in each:
            number += 1
            try:
                record = source.read(raw)
            except ValueError as error:
                await producer.flush()
                raise Unusable(f"Record {number:,} {error}") from None
            if not is_checked and any(name in DELAYING for name, _ in record.headers):
                is_checked = True
                await _warn_of_headers_that_delay_nothing(cluster, topic)
            if producer.add(record):
                await producer.flush()
            meter.add(1, len(raw))
        # Typed lines are sent one by one; from a pipe the next chunk is waiting already.
        await producer.flush()
    await producer.flush()


def _is_watched(source: Source) -> bool:
    """Whether to print the rate: not to a terminal that is used for input."""
    import sys

    from rockgate.cli.text import tables

    is_typed = not source.values and not source.files and sys.stdin.isatty()
    if is_typed and not source.has_one_of_nothing and tables.is_watched():
        tables.note("Enter one record per line; press Ctrl-D to finish.")
    return tables.is_watched() and not is_typed and not source.values


def _note_created(topic: str, count: int) -> None:
    from rockgate.cli.text import tables
    from rockgate.cli.text.values import plural

    tables.note(f"rockgate: The server created topic {topic} with {plural(count, 'partition')}.")


def _note_broken_off(topic: str, opened: Sequence[Producer], meter: Meter) -> None:
    """Report what was certainly sent; records in flight may have been stored as well."""
    from rockgate.cli.text import tables
    from rockgate.cli.text.values import plural

    meter.clear()
    sent = sum(part.record_count for producer in opened for part in producer.sent.values())
    text = f"rockgate: Interrupted: sent {plural(sent, 'record')} to {topic}"
    left = meter.record_count - sent
    tables.note(text + (f"; {left:,} more may have been written." if left > 0 else "."))


def _report(topic: str, producer: Producer, meter: Meter, *, is_json: bool) -> None:
    from rockgate.cli.text import tables
    from rockgate.cli.text.values import plural

    parts: list[dict[str, Any]] = [
        {
            "partition": index,
            "records": sent.record_count,
            "first_offset": sent.first_offset if sent.first_offset >= 0 else None,
            "last_offset": sent.last_offset if sent.last_offset >= 0 else None,
        }
        for index, sent in sorted(producer.sent.items())
    ]

    def show() -> None:
        if not tables.is_watched():
            return
        if len(parts) == 1 and parts[0]["records"] == 1:
            where = f"{topic} partition {parts[0]['partition']}"
            offset = parts[0]["first_offset"]
            tables.note(f"Sent to {where}" + ("." if offset is None else f" at offset {offset}."))
        elif meter.record_count <= 1000:
            tables.note(f"Sent {plural(meter.record_count, 'record')} to {topic}.")
        else:
            tables.note(meter.text())

    runner.finish(
        {"topic": topic, "records": meter.record_count, "partitions": parts},
        is_json=is_json,
        show=show,
    )
