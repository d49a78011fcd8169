"""`rockgate groups reset-offsets`: where a group resumes reading. A dry run unless executed.

How each way finds the new offset:

    --to-earliest      where the log begins
    --to-latest        where it ends
    --to-current       what is committed now; where nothing is, the end
    --to-offset N      N
    --shift-by N       what is committed now, plus N
    --to-datetime T    the first record at or after T; where there is none, the end
    --by-duration D    the same for D before now
    --from-file F      what the file says for each partition

An offset outside the log is moved to its nearer end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.admin.offset_resets import How, Move
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.view import Place

FILE_BYTES_MAX: Final = 64 << 20

EXAMPLES = """
[bold]Examples[/bold]

rockgate groups reset-offsets billing --topic orders --to-earliest

rockgate groups reset-offsets billing --topic orders:0,3 --shift-by -100 --execute

rockgate groups reset-offsets billing --all-topics --by-duration 2h --execute

rockgate groups reset-offsets billing --all-topics --to-current --export > offsets.csv

rockgate groups reset-offsets billing --from-file offsets.csv --execute
"""


Group = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=completion.groups)]
Topic = Annotated[
    list[str] | None,
    typer.Option(metavar="TOPIC[:PARTITION,...]", help="Topics to reset; repeatable."),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="All topics with committed offsets.")]
ToEarliest = Annotated[bool, typer.Option("--to-earliest", help="To the start of the log.")]
ToLatest = Annotated[bool, typer.Option("--to-latest", help="To the end of the log.")]
ToCurrent = Annotated[bool, typer.Option("--to-current", help="To the committed offset.")]
ToOffset = Annotated[int | None, typer.Option(metavar="OFFSET", min=0)]
ShiftBy = Annotated[
    int | None, typer.Option(metavar="COUNT", help="By N offsets; back if negative.")
]
ToDatetime = Annotated[
    str | None, typer.Option(metavar="TIME", help="To the first record at or after TIME.")
]
ByDuration = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="To the first record at or after DURATION ago."),
]
FromFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="CSV of topic,partition,offset; - for standard input."),
]
Execute = Annotated[
    bool, typer.Option("--execute", help="Apply the reset. Without it, nothing is changed.")
]
Export = Annotated[
    bool, typer.Option("--export", help="Print CSV for --from-file without changing anything.")
]


def reset_offsets(
    group: Group,
    topic: Topic = None,
    all_topics: AllTopics = False,
    to_earliest: ToEarliest = False,
    to_latest: ToLatest = False,
    to_current: ToCurrent = False,
    to_offset: ToOffset = None,
    shift_by: ShiftBy = None,
    to_datetime: ToDatetime = None,
    by_duration: ByDuration = None,
    from_file: FromFile = None,
    execute: Execute = False,
    export: Export = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Reset a group's offsets. Without --execute it only shows what would change.

    As in Kafka, the group must have no members: they would continue from their own positions.
    """
    from rockgate.cli.admin import offset_resets
    from rockgate.cli.text import values

    how = _how(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_current=to_current,
        to_offset=to_offset,
        shift_by=shift_by,
        to_datetime=to_datetime,
        by_duration=by_duration,
        from_file=from_file,
    )
    if export and (execute or json):
        runner.usage("--export cannot be combined with --execute or --json.")
    if isinstance(how.value, dict):
        if topic or all_topics:
            runner.usage("--from-file names the partitions; omit --topic and --all-topics.")
    elif bool(topic) == all_topics:
        runner.usage("Give either --topic TOPIC (repeatable) or --all-topics.")

    wanted = runner.checked("--topic", values.topic_partitions, topic or ())

    def run(cluster: Cluster) -> Any:
        return offset_resets.reset(cluster, group, wanted, how, is_executed=execute)

    moves, errors = runner.run(run, server=bootstrap_server, timeout=timeout, is_json=json)
    rows = [_fields(move) for move in moves]
    runner.finish(
        {"group": group, "is_executed": execute and not errors, "offsets": rows},
        errors,
        is_json=json,
        show=lambda: _show(moves, is_executed=execute, is_export=export, has_errors=bool(errors)),
    )


def _how(**given: Any) -> How:
    """The one target that the options name."""
    from rockgate.cli.admin.offset_resets import How
    from rockgate.cli.text import values

    chosen = [name for name, value in given.items() if value is not None and value is not False]
    if len(chosen) != 1:
        flags = ", ".join("--" + name.replace("_", "-") for name in given)
        runner.usage(f"Give exactly one of {flags}.")
    way, value = chosen[0], given[chosen[0]]
    if way == "to_datetime":
        value = runner.checked("--to-datetime", values.time_ms, value)
    elif way == "by_duration":
        value = runner.checked("--by-duration", values.duration_ms, value)
    elif way == "from_file":
        value = runner.checked("--from-file", read_file, value)
    return How(way, value)


def read_file(path: Path) -> dict[Place, int]:
    """Lines of topic,partition,offset; ValueError names the line that is something else."""
    import sys

    try:
        if str(path) == "-":
            text = sys.stdin.read(FILE_BYTES_MAX)
        else:
            with path.open(encoding="utf-8") as file:
                text = file.read(FILE_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read it: {error}") from None
    found: dict[Place, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        parts = [part.strip().strip('"') for part in line.split(",")]
        if len(parts) != 3 or not all(p.isascii() and p.isdigit() for p in parts[1:]):
            raise ValueError(
                f"line {number}: expected topic,partition,offset, got {line.strip()!r}"
            )
        found[parts[0], int(parts[1])] = int(parts[2])
    if not found:
        raise ValueError(f"{path} lists no partitions")
    return found


def _fields(move: Move) -> dict[str, Any]:
    """As programs see it."""
    return {
        "topic": move.place[0],
        "partition": move.place[1],
        "old_offset": move.old,
        "new_offset": move.new,
        "end_offset": move.end,
        "new_lag": move.end - move.new,
    }


def _show(moves: list[Move], *, is_executed: bool, is_export: bool, has_errors: bool) -> None:
    from rockgate.cli.text import tables

    if is_export:
        for move in moves:
            say(f"{move.place[0]},{move.place[1]},{move.new}")
        return
    if not moves:
        tables.note("Nothing to reset: the group has no committed offsets there.")
        return
    tables.table(
        ("topic", "partition", "old", "new", "new lag"),
        [(*move.place, move.old, move.new, move.end - move.new) for move in moves],
    )
    if not is_executed:
        tables.note("Nothing was changed; use --execute to apply.")
    elif not has_errors:
        tables.note("Offsets reset.")
