"""The log of a rockgate: by its metrics, its directories, and the check of its files."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

from rockgate.cli.admin.metrics import Metrics
from rockgate.cli.client.admin.topics import LogDir
from rockgate.cli.client.remoting import log_checks as wire_checks
from rockgate.cli.text.values import size_text
from rockgate.console.pages.cluster import directories_of, show_directories
from rockgate.console.pages.delayed import ask_remoting
from rockgate.console.session.sessions import Session
from rockgate.console.widgets.actions import attempt, button, may_change
from rockgate.console.widgets.frame import page, peer, session
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.times import reader_zone, time_text
from rockgate.protocol.remoting.bodies.admin import LogCheck, LogCheckState

REFRESH_S: Final = 5.0
CHECK_S: Final = 1.0
DAMAGE: Final = (
    Column("file", "File", is_mono=True),
    Column("position", "Position", is_number=True),
    Column("reason", "Reason"),
)
LOG: Final = (
    ("Start position", "rockgate_log_start_position", "count"),
    ("End position", "rockgate_log_end_position", "count"),
    ("Flushed up to", "rockgate_log_flushed_position", "count"),
    ("Segments", "rockgate_segments", "count"),
    ("Size of segments", "rockgate_segment_bytes", "size"),
    ("Live in sealed segments", "rockgate_segment_live_bytes", "size"),
    ("Dead in sealed segments", "rockgate_segment_dead_bytes", "size"),
    ("Segments not yet accounted", "rockgate_segments_unaccounted", "count"),
    ("Disk used", "rockgate_disk_used_ratio", "part"),
    ("Disk failed", "rockgate_disk_failed", "count"),
    ("Responses waiting for an fsync", "rockgate_flush_waiting", "count"),
    ("Appends wait for the disk", "rockgate_store_stalled", "count"),
    ("Slow appends since start", "rockgate_slow_appends_total", "count"),
    ("Failed appends since start", "rockgate_failed_appends_total", "count"),
    ("Delivery schedule", "rockgate_delay_schedule_bytes", "size"),
)


@page("/log", "Log")
def log() -> None:
    """The log of a rockgate by its metrics, and the directories of any server."""
    server = peer()

    async def load() -> tuple[list[tuple[str, str]], str, list[LogDir], str]:
        directories, problem = await directories_of(server)
        error = "" if server.metrics_error is None else str(server.metrics_error)
        return _log_facts(server.metrics or Metrics()), error, directories, problem

    def show(found: tuple[list[tuple[str, str]], str, list[LogDir], str]) -> None:
        pairs, error, directories, problem = found
        if pairs:
            with ui.column().classes("rg-panel"):
                facts(pairs)
        elif error:
            ui.label(f"No metrics: {error}").classes("rg-quiet")
        _title("Log directories")
        if problem:
            ui.label(problem).classes("rg-problem")
        show_directories(directories)

    Live(load, show, every_s=REFRESH_S)
    _checking(session())


def _log_facts(metrics: Metrics) -> list[tuple[str, str]]:
    found = []
    for title, name, kind in LOG:
        value = metrics.value(name)
        if value is None:
            continue
        if kind == "size":
            found.append((title, size_text(int(value))))
        else:
            found.append((title, f"{value:.1%}" if kind == "part" else f"{value:,.0f}"))
    return found


def _checking(who: Session) -> None:
    """The check of the files, which the server runs in the background."""
    if who.peer.offers.extras is False:
        return
    _title("Check")
    ui.label(
        "Reads every entry of the log, its indexes and snapshots, and compares them with their"
        " checksums. Nothing is changed, and the server keeps running."
    ).classes("rg-quiet")
    bar = ui.linear_progress(value=0, show_value=False).props('aria-label="Checked"')
    bar.visible = False

    def show(found: LogCheck) -> None:
        is_running = found.state is LogCheckState.RUNNING
        bar.visible = is_running
        bar.value = found.read_bytes / found.total_bytes if found.total_bytes else 0
        if may_change():
            start.visible, stop.visible = not is_running, is_running
        _show_check(found, reader_zone_name)

    reader_zone_name = reader_zone()
    live = Live(lambda: ask_remoting(who, wire_checks.status), show, every_s=CHECK_S)
    if not may_change():
        return

    async def ask(work: Any) -> None:
        await attempt(lambda: ask_remoting(who, work))
        await live.refresh()

    with ui.row().classes("rg-row"):
        start = button("Check the log", lambda: ask(wire_checks.start), icon="fact_check")
        stop = button("Stop the check", lambda: ask(wire_checks.stop))
        stop.visible = False


def _show_check(found: LogCheck, zone: Any) -> None:
    if found.state is LogCheckState.NEVER:
        ui.label("Not checked since the server was started.").classes("rg-quiet")
        return
    read = f"{size_text(found.read_bytes)} of {size_text(found.total_bytes)} read"
    if found.state is LogCheckState.RUNNING:
        ui.label(f"{read}.").props('role="status"')
        return
    ended = time_text(found.ended_ms, zone)
    if found.report is None:
        ui.label(found.problem or f"Stopped {ended}; {read}.").classes("rg-quiet")
        return
    report = found.report
    count = report.damage_count
    said = f"{count:,} damaged places." if count else "Nothing is damaged."
    ui.label(f"{said} Checked {ended}.").classes("rg-bad" if count else "rg-good")
    with ui.column().classes("rg-panel"):
        facts(
            [
                ("Segments", report.segment_count),
                ("Entries", report.entry_count),
                ("Record batches among them", report.batch_count),
                ("Queue index files", report.index_count),
                ("Key index files", report.key_file_count),
                ("Snapshots", report.snapshot_count),
                ("Positions", f"{report.log_start:,} to {report.log_end:,}"),
            ]
        )
        for note in report.notes:
            ui.label(note).classes("rg-quiet")
    if count:
        rows = [
            Row(
                f"{each.file}-{each.position}",
                {"file": each.file, "position": each.position, "reason": each.reason},
            )
            for each in report.damage
        ]
        grid(DAMAGE, rows, label="Damage")


def _title(text: str) -> Any:
    return ui.label(text).classes("rg-subtitle").props('role="heading" aria-level="2"')
