"""`rockgate log`: print and check a data directory, and truncate a damaged log.

A thin layer: checking, printing and truncating are up to the store (`rockgate.store.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import server_options
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.gateway.compose.config import Config
    from rockgate.store.check.dump import DumpRow
    from rockgate.store.check.inspect import Report
    from rockgate.store.check.trial import Opener
    from rockgate.store.files.interface import Directory, DiskDirectory

DAMAGED_STATUS = 1
INTERRUPTED_STATUS = 130

app = typer.Typer(
    help="Check, dump and repair the log on disk.",
    no_args_is_help=True,
    add_completion=False,
)

CHECK_EXAMPLES = """
[bold]Examples[/bold]

rockgate log check

rockgate log check --data-dir /srv/rockgate --json

[bold]Exit status[/bold]

0: no damage, and a server would start. 1: damage, or a server would refuse to start.
2: usage error.
"""

DUMP_EXAMPLES = """
[bold]Examples[/bold]

rockgate log dump --limit 20

rockgate log dump --from 1048576 --topic orders --queue 3

rockgate log dump --json | jq 'select(.kind == "batch")'
"""

REPAIR_EXAMPLES = """
[bold]Examples[/bold]

rockgate log check

rockgate log repair --truncate-at 73400320

[bold]Exit status[/bold]

0: done. 1: not possible, nothing was changed. 2: usage error.
"""

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(epilog=CHECK_EXAMPLES)
def check(
    config: server_options.ConfigFile = None,
    data_dir: server_options.DataDir = None,
    json: Json = False,
) -> None:
    """Read the whole data directory and report damage: file, position, reason.

    Then it tries a start in memory; if that fails, it reports where truncating the log would let a
    server start. Nothing is changed. While a server is running, no start is tried.
    """
    from rockgate.store.check.inspect import inspect

    directory, settings = _directory(config, data_dir)
    try:
        with _progress(_log_bytes(directory), "Checking", is_quiet=json) as advance:
            report = inspect(directory, advance, _opener(settings))
    except KeyboardInterrupt:
        say("rockgate: Interrupted: the part not read yet may be damaged.", err=True)
        raise typer.Exit(INTERRUPTED_STATUS) from None
    if json:
        _echo_json(_report_fields(report))
    else:
        _print_report(report, settings)
    if not report.is_clean or report.refusal is not None:
        raise typer.Exit(DAMAGED_STATUS)


@app.command(epilog=DUMP_EXAMPLES)
def dump(
    config: server_options.ConfigFile = None,
    data_dir: server_options.DataDir = None,
    start: Annotated[
        int | None, typer.Option("--from", metavar="POSITION", min=0, help="Start position.")
    ] = None,
    end: Annotated[
        int | None, typer.Option("--to", metavar="POSITION", min=0, help="End position.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="COUNT", min=1, help="Maximum number of entries.")
    ] = None,
    topic: Annotated[str | None, typer.Option(metavar="NAME", help="Only this topic.")] = None,
    queue: Annotated[int | None, typer.Option(metavar="ID", help="Only this queue.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print the log's entries without bodies, one per line, and damage where it occurs."""
    from itertools import islice

    from rockgate.store.check.dump import dump as rows_of

    directory, _ = _directory(config, data_dir)
    rows = (
        row
        for row in rows_of(directory, start, end)
        if (topic is None or row.topic == topic) and (queue is None or row.queue_id == queue)
    )
    if json:
        for row in islice(rows, limit):
            _echo_json(row._asdict(), indent=None)
        return
    say(_HEADING)
    for row in islice(rows, limit):
        say(_line(row))


@app.command(epilog=REPAIR_EXAMPLES)
def repair(
    truncate_at: Annotated[
        int,
        typer.Option(
            metavar="POSITION", min=0, help="New end of the log, as printed by `log check`."
        ),
    ],
    config: server_options.ConfigFile = None,
    data_dir: server_options.DataDir = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="If no position works, move the whole log aside and leave an empty one."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Truncate the log at a position, and move everything after it to the directory `lost`.

    [bold]This removes everything after the position, for every topic.[/bold] Use it when the server
    refuses the log and there is no better copy. Stop the server first. If a server could not start
    from what remains, nothing is changed.
    """
    from rockgate.store.check.repair import truncate
    from rockgate.store.errors import CannotRepair, StoreError

    directory, settings = _directory(config, data_dir)
    try:
        with _progress(truncate_at, "Checking", is_quiet=json) as advance:
            done = truncate(
                directory,
                truncate_at,
                on_progress=advance,
                is_forced=force,
                opens=_opener(settings),
            )
    except (CannotRepair, StoreError) as error:
        server_options.fail([f"{str(error).rstrip('.')}."], DAMAGED_STATUS)
    if json:
        _echo_json(done._asdict())
        return
    moved = f" Moved {done.lost_bytes:,} bytes to {done.saved_in}." if done.lost_bytes else ""
    say(f"The log now ends at {done.end}, with {done.entry_count:,} entries.{moved}")


# The directory


def _directory(config: Path | None, data_dir: str | None) -> tuple[DiskDirectory, Config]:
    """Return the directory, and the configuration of its server as far as it is known here."""
    from dataclasses import replace

    from rockgate.gateway.compose.config.gather import DEFAULT_ORIGIN
    from rockgate.store.check.trial import segment_bytes_of
    from rockgate.store.files.interface import DiskDirectory

    flags = {"--data-dir": ("server.data_dir", data_dir)}
    gathered = server_options.gathered(config=config, flags=flags, pairs=())
    path = Path(gathered.config.server.data_dir)
    if not path.is_dir():
        server_options.fail([f"Data directory not found: {path}"], server_options.USAGE_STATUS)
    directory = DiskDirectory(path)
    if gathered.origins["store.segment_bytes"] == DEFAULT_ORIGIN:
        # The server may have a flag that was not given here; its directory says what it needs.
        size = segment_bytes_of(directory) or gathered.config.store.segment_bytes
        store = replace(gathered.config.store, segment_bytes=size)
        return directory, replace(gathered.config, store=store)
    return directory, gathered.config


def _opener(config: Config) -> Opener:
    """How a server with this configuration opens a data directory; its log lines are not ours."""
    import logging

    from rockgate.gateway.compose.folds import server_folds
    from rockgate.gateway.runtime.errors import IdentityError
    from rockgate.gateway.runtime.identity import look
    from rockgate.gateway.topics.policy import queue_policy
    from rockgate.gateway.transcode.keys import record_keys
    from rockgate.store.check.trial import CannotOpen
    from rockgate.store.clock import SystemClock
    from rockgate.store.store import Store

    logging.getLogger("rockgate").addHandler(logging.NullHandler())

    def opens(directory: Directory) -> None:
        Store(
            directory,
            config.store,
            SystemClock(),
            folds=server_folds,
            record_keys=record_keys,
            policy_of=queue_policy,
        ).begin_epoch()
        try:
            look(Path(directory.path), config.server.node_id)
        except IdentityError as error:
            raise CannotOpen(str(error)) from error

    return opens


def _log_bytes(directory: DiskDirectory) -> int:
    files = Path(directory.path, "commitlog").glob("[0-9]*")
    return sum(file.stat().st_size for file in files)


# Showing


@contextmanager
def _progress(total: int, what: str, *, is_quiet: bool) -> Iterator[Callable[[int], None]]:
    """Print the progress of a long walk on standard error, if it is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    if is_quiet or not console.is_terminal:
        yield lambda size: None
        return
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda size: progress.advance(task, size)


def _echo_json(value: Any, indent: int | None = 2) -> None:
    from json import dumps

    typer.echo(dumps(value, indent=indent))


def _report_fields(report: Report) -> dict[str, Any]:
    from dataclasses import asdict

    fields = asdict(report)
    fields["is_clean"] = report.is_clean
    fields["damage"] = [finding._asdict() for finding in report.damage]
    fields["starts"] = None if report.owner is not None else report.refusal is None
    return fields


def _print_report(report: Report, config: Config) -> None:
    from rockgate.cli.text.values import plural

    for finding in report.damage:
        say(str(finding))
    for note in report.notes:
        say(f"Note: {note}")
    say(
        f"{'Clean' if report.is_clean else 'DAMAGED'}: positions {report.log_start} to "
        f"{report.log_end}, flushed up to {report.flushed}; "
        f"{plural(report.entry_count, 'entry', 'entries')} "
        f"({plural(report.batch_count, 'batch', 'batches')}) "
        f"in {plural(report.segment_count, 'segment')}; "
        f"{plural(report.index_count, 'index file')}, {plural(report.key_file_count, 'key file')}, "
        f"{plural(report.snapshot_count, 'snapshot')}."
    )
    for line in _outlook(report, config):
        say(line)


def _outlook(report: Report, config: Config) -> Iterator[str]:
    """The outcome of a start, and how to repair what prevents it."""
    if report.owner is not None:
        yield f"Process {report.owner} is using the directory; no start was tried."
        return
    refusal = report.refusal
    if refusal is None:
        size = config.store.segment_bytes
        given = (
            f" with store.segment_bytes={size}"
            if size != type(config.store)().segment_bytes
            else ""
        )
        yield (
            f"A server would start{given}."
            if report.is_clean
            else f"A server would start{given} despite the damage."
        )
        return
    yield f"A server would refuse to start: {refusal.reason.rstrip('.')}."
    if refusal.is_repairable and report.repair_at is not None:
        yield f"To repair it, run: rockgate log repair --truncate-at {report.repair_at}"
    elif refusal.is_repairable:
        yield (
            "No truncation lets a server start. Without a better copy, start over with an empty "
            f"log: rockgate log repair --truncate-at {report.log_start} --force"
        )


_HEADING = (
    f"{'position':>14} {'size':>9} {'kind':<8} {'store time':<23} {'queue':>5} {'offset':>12} "
    f"{'count':>6} topic"
)


def _line(row: DumpRow) -> str:
    start = f"{row.position:>14} {row.size:>9} {row.kind:<8}"
    if row.kind == "filler":
        return start.rstrip()
    if row.kind == "damaged":
        return f"{start} {row.reason}"
    offset = "-" if row.kind == "state" else str(row.offset)
    return (
        f"{start} {_time(row.store_ms):<23} {row.queue_id:>5} {offset:>12} "
        f"{row.offset_count:>6} {row.topic}{_extras(row)}"
    )


def _time(milliseconds: int) -> str:
    from datetime import UTC, datetime

    try:
        time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError):
        return str(milliseconds)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}"


def _extras(row: DumpRow) -> str:
    flags = [f"[{','.join(row.flags)}]"] if row.flags else []
    hidden = ("INNER_NUM", "INNER_BASE")
    visible = [f"{name}={value}" for name, value in row.properties.items() if name not in hidden]
    return "".join(f" {each}" for each in (*flags, *visible))
