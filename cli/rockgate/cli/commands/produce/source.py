"""Where the records to send come from, and how bytes become records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rockgate.cli.app import runner

if TYPE_CHECKING:
    from rockgate.cli.client.produce.producer import Outgoing


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where records come from, and how each is read."""

    values: list[str]
    files: list[Path]
    is_whole: bool
    read: Callable[[bytes], Outgoing]
    is_delayed: bool
    has_one_of_nothing: bool


def check(source: Source, *, jsonl: bool) -> None:
    """End the command if the options contradict each other."""
    if source.values and source.files:
        runner.usage("Give values or --file, not both.")
    if source.is_whole and (source.values or jsonl):
        runner.usage("--whole requires files or standard input, without --jsonl.")
    for path in source.files:
        if str(path) != "-" and not path.is_file():
            runner.usage(f"File not found: {path}")


def reader(
    *,
    jsonl: bool,
    keep_partitions: bool,
    key: str | None,
    key_separator: str | None,
    header: list[str] | None,
    partition: int | None,
    timestamp: str | None,
    null_value: bool,
) -> Callable[[bytes], Outgoing]:
    """How bytes are parsed into a record: as JSON, or by options common to all records."""
    from functools import partial

    from rockgate.cli.text import records
    from rockgate.cli.text import values as read

    if jsonl:
        shared = (key, key_separator, header, partition, timestamp, null_value or None)
        if any(each is not None for each in shared):
            runner.usage(
                "With --jsonl, key, headers, delay, partition and timestamp come from the input."
            )
        return partial(records.from_json_line, keeps_partition=keep_partitions)
    if keep_partitions:
        runner.usage("--keep-partitions requires --jsonl.")
    if key is not None and key_separator is not None:
        runner.usage("Give --key or --key-separator, not both.")
    if key_separator == "":
        runner.usage("--key-separator must not be empty.")
    pairs = runner.checked("--header", read.pairs, header or ())
    return partial(
        records.from_line,
        key=None if key is None else _encoded(key),
        separator=None if key_separator is None else _encoded(key_separator),
        headers=tuple((name, _encoded(value or "")) for name, value in pairs),
        partition=partition,
        timestamp_ms=None
        if timestamp is None
        else runner.checked("--timestamp", read.time_ms, timestamp),
        empty_is_null=null_value,
    )


def _encoded(text: str) -> bytes:
    """The original bytes of a command-line argument, even if they are not UTF-8."""
    import os

    return os.fsencode(text)


def with_delay(
    header: list[str] | None, delay: str | None, deliver_at: str | None
) -> list[str] | None:
    """The headers of every record, with the one that delays it."""
    from rockgate.cli.text import values
    from rockgate.protocol.remoting.properties import TIMER_DELAY_MS, TIMER_DELIVER_MS

    if delay is not None and deliver_at is not None:
        runner.usage("Give --delay or --deliver-at, not both.")
    if delay is not None:
        delay_ms = runner.checked("--delay", values.duration_ms, delay)
        return [*(header or ()), f"{TIMER_DELAY_MS}={delay_ms}"]
    if deliver_at is not None:
        due_ms = runner.checked("--deliver-at", values.time_ms, deliver_at)
        return [*(header or ()), f"{TIMER_DELIVER_MS}={due_ms}"]
    return header


async def raws(source: Source) -> AsyncIterator[list[bytes]]:
    """The bytes of records, in as many as came at once."""
    import os

    from rockgate.cli.text import streams

    if source.has_one_of_nothing:
        yield [b""]
        return
    if source.values:
        yield [_encoded(value) for value in source.values]
        return
    for path in source.files or [Path("-")]:
        descriptor = 0 if str(path) == "-" else os.open(path, os.O_RDONLY)
        try:
            if source.is_whole:
                found = b"".join([chunk async for chunk in streams.chunks(descriptor)])
                yield [found]
            else:
                async for each in streams.lines(descriptor):
                    yield each
        finally:
            if descriptor:
                os.close(descriptor)
