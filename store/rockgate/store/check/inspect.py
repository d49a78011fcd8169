"""Inspects a data directory: reads it whole, changes nothing, reports each problem's place.

docs/internals/recovery.md specifies what a start does about each problem. There are two kinds of
damage:

- in the log, before the flushed position: data is damaged, and a server refuses to start;
- in what is derived from the log (index files, key index) or stored twice (snapshots, checkpoint
  slots): the next start rebuilds it, or uses the other copy.

After the flushed position the first invalid entry ends the log. That is not damage but what a power
failure leaves, and is reported as a note.

A directory may be inspected while a server uses it: files that are deleted meanwhile are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rockgate.protocol.entry import CONTINUES
from rockgate.store.check.inspectfiles import (
    Finding,
    check_indexes,
    check_key_files,
    check_snapshots,
    read_checkpoint,
)
from rockgate.store.check.logwalk import (
    COMMITLOG,
    Damaged,
    Filler,
    OnProgress,
    Row,
    Unwritten,
    Whole,
)
from rockgate.store.check.repair import best_position
from rockgate.store.check.trial import Opener, Refusal, plain_opener, refusal_of
from rockgate.store.files.interface import Directory
from rockgate.store.upkeep.checkpoint import Checkpoint

_REPORT_BYTES: Final = 16 << 20


@dataclass(slots=True, kw_only=True)
class Report:
    """The contents of a data directory, and what is wrong with it."""

    log_start: int = 0
    log_end: int = 0
    flushed: int = 0
    segment_count: int = 0
    entry_count: int = 0
    batch_count: int = 0
    index_count: int = 0
    key_file_count: int = 0
    snapshot_count: int = 0
    damage: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    owner: str | None = None
    """The process that uses the directory, if any; then no start was tried."""
    refusal: Refusal | None = None
    """Why a start is refused; None if it is not."""
    repair_at: int | None = None
    """If a start is refused because of damage: the highest position at which truncation helps.

    None if there is none: then a server can only start with an empty log.
    """

    @property
    def is_clean(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage


def inspect(
    directory: Directory,
    on_progress: OnProgress = lambda size: None,
    opens: Opener | None = None,
) -> Report:
    """Check everything in a data directory, and try a start on it.

    `opens` opens it as a server would.
    """
    report = check(directory, on_progress)
    report.owner = directory.owner("lock")
    if report.owner is None:
        opens = opens or plain_opener(directory)
        report.refusal = refusal_of(directory, opens)
        if report.refusal is not None and report.refusal.is_repairable:
            report.repair_at = best_position(directory, opens)
    return report


def check(directory: Directory, on_progress: OnProgress = lambda size: None) -> Report:
    """Check everything in a data directory."""
    report = Report()
    checkpoint, findings = read_checkpoint(directory)
    report.damage += findings
    if not directory.has_child(COMMITLOG):
        if checkpoint is not None and checkpoint.flushed:
            path = f"{directory.path}/{COMMITLOG}"
            reason = (
                f"the checkpoint covers the log up to {checkpoint.flushed}, but there is no log"
            )
            report.damage.append(Finding(path, checkpoint.flushed, reason))
        return report
    row = Row(directory.child(COMMITLOG), checkpoint.segment_bytes if checkpoint else 0)
    try:
        _check_log(row, checkpoint, report, on_progress)
        for name, checks in (("queueindex", check_indexes), ("index", check_key_files)):
            if directory.has_child(name):
                count, findings = checks(directory.child(name), row, report.log_end)
                report.damage += findings
                if name == "queueindex":
                    report.index_count = count
                else:
                    report.key_file_count = count
        _check_snapshots(directory, report)
    finally:
        row.close()
    return report


def _check_log(
    row: Row, checkpoint: Checkpoint | None, report: Report, on_progress: OnProgress
) -> None:
    report.segment_count = len(row.segments)
    report.log_start = row.start
    if checkpoint is None or not checkpoint.sequence:
        report.notes.append("There is no checkpoint, so no part of the log is known to be flushed.")
        checkpoint = Checkpoint(flushed=row.start)
    flushed = report.flushed = checkpoint.flushed
    for problem in row.problems:
        is_repairable = problem.is_short and flushed <= (problem.good_to or 0)
        reason = (
            f"{problem.reason}; repaired by the next start" if is_repairable else problem.reason
        )
        report.damage.append(Finding(problem.file, problem.position, reason, is_repairable))
    for damaged in _walk(row, flushed, report, on_progress):
        row.note_damage(damaged)
        reason = f"{damaged.reason}; {damaged.size:,} bytes up to the next valid entry"
        report.damage.append(Finding(row.file_at(damaged.position), damaged.position, reason))
    if not row.start <= flushed <= row.end:
        place = row.start if flushed < row.start else report.log_end
        reason = (
            f"the checkpoint covers the log up to {flushed}, but the log covers "
            f"{row.start} to {row.end}"
        )
        report.damage.append(Finding(row.path, place, reason))


def _walk(row: Row, flushed: int, report: Report, on_progress: OnProgress) -> Iterator[Damaged]:
    """Count the entries up to the log's end, and yield the damage before the flushed position."""
    reported = whole_to = report.log_end = row.start
    group: int | None = None
    for piece in row.walk(row.start, row.end):
        position = piece.position
        if position - reported >= _REPORT_BYTES:
            on_progress(position - reported)
            reported = position
        if isinstance(piece, Whole | Filler):
            whole_to = position + piece.size
        if isinstance(piece, Whole):
            report.entry_count += 1
            report.batch_count += piece.entry.is_batch
            is_last = not piece.entry.sys_flag & CONTINUES
            group = None if is_last else position if group is None else group
            continue
        if group is not None and group < flushed:
            # One finding: the log can be truncated where the group starts, but not within it.
            begin, group = group, None
            end = position if isinstance(piece, Filler) else position + piece.size
            cause = f", {piece.reason}" if isinstance(piece, Damaged) else ""
            yield Damaged(begin, end - begin, f"incomplete group of entries{cause}")
            if position < flushed:
                continue
        if isinstance(piece, Filler) and group is None:
            continue
        if position >= flushed:
            report.log_end = position if group is None else group
            _note_end(report, piece, group)
            break
        if isinstance(piece, Damaged):
            yield piece
        elif isinstance(piece, Unwritten):
            yield Damaged(position, piece.size, "unwritten space")
    else:
        report.log_end = whole_to if group is None else group
    on_progress(row.end - reported)


def _note_end(report: Report, piece: Damaged | Unwritten | Filler, group: int | None) -> None:
    if group is not None:
        reason = "incomplete group of entries"
    elif isinstance(piece, Damaged):
        reason = piece.reason
    else:
        return
    report.notes.append(
        f"The log ends at {report.log_end}: {reason}; the next start moves the rest to lost/."
    )


def _check_snapshots(directory: Directory, report: Report) -> None:
    findings: list[Finding] = []
    usable = 0
    if directory.has_child("snapshots"):
        for name, header, damage in check_snapshots(directory.child("snapshots")):
            report.snapshot_count += 1
            if damage is not None:
                findings.append(damage)
            elif header is not None and header.needs > report.log_end:
                report.notes.append(
                    f"Snapshot {name} requires the log up to {header.needs}; the next start "
                    "removes it."
                )
            elif header is not None and header.replay_from >= report.log_start:
                usable += 1
    report.damage += findings
    if report.log_start > 0 and not usable:
        reason = f"there is no valid snapshot, but the log starts at {report.log_start}"
        report.damage.append(Finding(f"{directory.path}/snapshots", report.log_start, reason))
