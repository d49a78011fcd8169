"""Half messages that are undecided, and Kafka's transactions that are open or hang."""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple

from nicegui import ui

from rockgate.cli.admin import open_transactions
from rockgate.cli.client.admin import transactions as wire
from rockgate.cli.client.admin.transactions import Hanging, Transaction
from rockgate.cli.client.kafka.errors import ClientError, Missed, Refused
from rockgate.cli.client.remoting import halves as half_wire
from rockgate.cli.client.remoting.halves import Halves
from rockgate.cli.text.values import span_text
from rockgate.console.pages.delayed import ask_remoting, body_of
from rockgate.console.session.sessions import Session
from rockgate.console.widgets.actions import (
    attempt,
    button,
    confirmed,
    may_change,
)
from rockgate.console.widgets.frame import link_to, page, session
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.progress import Progress, Report
from rockgate.console.widgets.times import ago_text, exact, reader_zone, time_text

REFRESH_S: Final = 3.0
LIMIT: Final = 200
PREVIEW: Final = 4_096
HANGING_MS: Final = 15 * 60_000
HALVES: Final = (
    Column("prepared", "Prepared"),
    Column("age", "Age"),
    Column("group", "Group"),
    Column("topic", "Topic"),
    Column("checks", "Checks", is_number=True, is_wide=True),
    Column("next", "Next check", is_wide=True),
    Column("producers", "Producers", is_number=True, is_wide=True),
)
KAFKA: Final = (
    Column("id", "Transactional id"),
    Column("state", "State"),
    Column("producer", "Producer", is_number=True, is_wide=True),
    Column("open", "Open for"),
    Column("timeout", "Timeout", is_wide=True),
    Column("partitions", "Partitions", is_number=True, is_wide=True),
)
HANGING: Final = (
    Column("topic", "Topic"),
    Column("partition", "Partition", is_number=True),
    Column("start", "Start offset", is_number=True),
    Column("producer", "Producer", is_number=True, is_wide=True),
    Column("reason", "Reason"),
)


class Page(NamedTuple):
    """Both kinds; None for half messages where the server has none."""

    halves: Halves | None
    open: list[Transaction]


@page("/transactions", "Transactions")
def transactions() -> None:
    """What is undecided, oldest first."""
    who, zone = session(), reader_zone()

    async def load() -> Page:
        halves: Halves | None = None
        if who.peer.offers.extras is not False:
            try:
                halves = await ask_remoting(
                    who,
                    lambda remoting: half_wire.list_halves(
                        remoting, limit=LIMIT, group=None, open_ms=0
                    ),
                )
            except ClientError:
                halves = None
        return Page(halves, await open_transactions.listed(who.peer.cluster))

    def show(found: Page) -> None:
        if found.halves is not None:
            _halves(found.halves, zone)
        _open(found.open)

    live = Live(load, show, every_s=REFRESH_S)
    ui.label("Hanging").classes("rg-subtitle").props('role="heading" aria-level="2"')
    ui.label(
        "A hanging transaction is open in a partition and unknown to its coordinator, so that"
        " readers of committed records never pass it."
    ).classes("rg-quiet")
    results = ui.column().classes("rg-live")
    with ui.row().classes("rg-row"):
        button("Find hanging transactions", lambda: find(), icon="search")
    finding = Progress("Partitions that were asked", "partitions")
    aborting = Progress("Transactions that were aborted", "transactions")

    def find() -> None:
        finding.start(lambda report: _find(who, results, live, aborting, report))


def _halves(found: Halves, zone: Any) -> None:
    ui.label(f"Half messages: {found.undecided:,} undecided").classes("rg-subtitle")
    rows = [
        Row(
            str(each.offset),
            {
                "prepared": time_text(each.prepared_ms, zone),
                "age": span_text(max(0, found.now_ms - each.prepared_ms)),
                "group": each.group,
                "topic": each.message.topic,
                "checks": each.check_count,
                "next": ago_text(each.next_check_ms, found.now_ms),
                "producers": each.producer_count,
            },
            {"prepared": link_to("transactions", "half", each.offset)},
            {"prepared": exact(each.prepared_ms)},
        )
        for each in found.found
    ]
    grid(HALVES, rows, label="Half messages", empty="None.")


def _open(found: list[Transaction]) -> None:
    now_ms = int(time.time() * 1000)
    ui.label("Kafka's transactions that are open").classes("rg-subtitle")
    rows = [
        Row(
            each.id,
            {
                "id": each.id,
                "state": each.state,
                "producer": each.producer_id,
                "open": span_text(max(0, now_ms - each.start_ms)) if each.start_ms >= 0 else None,
                "timeout": span_text(each.timeout_ms),
                "partitions": len(each.places),
            },
            {"id": link_to("transactions", "kafka", each.id)},
        )
        for each in found
    ]
    grid(KAFKA, rows, label="Open transactions", empty="None.")


async def _find(
    who: Session, results: Any, live: Live[Any], aborting: Progress, report: Report
) -> str:
    view = await who.peer.view()
    places = [(name, index) for name, each in view.topics.items() for index in each.partitions]
    report(0, len(places))
    found, refused = await open_transactions.hanging(
        who.peer.cluster, places, HANGING_MS, lambda done: report(done, len(places))
    )
    results.clear()
    with results:
        for one in refused[:3]:
            ui.label(str(one)).classes("rg-problem")
        rows = [_hanging_row(number, each) for number, each in enumerate(found)]
        table = grid(
            HANGING,
            rows,
            label="Hanging",
            empty="No hanging transactions found.",
            selects=bool(rows) and may_change(),
        )
        if rows and may_change():
            button(
                "Abort the selected",
                lambda: _abort(
                    who, [found[int(each["id"])] for each in table.selected], live, aborting
                ),
                is_danger=True,
            )
    return f"Asked for {len(places):,} partitions."


def _hanging_row(number: int, each: Hanging) -> Row:
    return Row(
        str(number),
        {
            "topic": each.open.place[0],
            "partition": each.open.place[1],
            "start": each.open.start_offset,
            "producer": each.open.producer_id,
            "reason": each.reason,
        },
    )


async def _abort(who: Session, chosen: list[Hanging], live: Live[Any], aborting: Progress) -> None:
    lines = [
        f"{each.open.place[0]} partition {each.open.place[1]}: the records of producer"
        f" {each.open.producer_id} from offset {each.open.start_offset:,} on are lost for readers"
        " of committed records."
        for each in chosen
    ]
    if not chosen or not await confirmed("Abort transactions?", lines, "Abort"):
        return

    async def work(report: Report) -> str:
        problems: list[str] = []
        for number, each in enumerate(chosen):
            report(number, len(chosen))
            error = await wire.abort(who.peer.cluster, each.open)
            if error is not None:
                problems.append(str(error.at(each.open.place)))
        await live.refresh()
        count = len(chosen) - len(problems)
        return " ".join([f"Aborted {count:,} of {len(chosen):,}.", *problems[:5]])

    if not who.is_read_only:
        aborting.start(work)


@page("/transactions/half/{offset}", "Half message")
def half(offset: int) -> None:
    """One undecided half message, to commit or to roll back."""
    who, zone, id_ = session(), reader_zone(), str(offset)

    async def read(remoting: Any) -> Any:
        found = await half_wire.describe(remoting, [id_], preview=PREVIEW)
        if id_ not in found:
            raise Missed(f"half message {id_}", "it is decided, or never existed")
        return found[id_]

    def show(found: Any) -> None:
        with ui.column().classes("rg-panel"):
            facts(
                [
                    ("Group", found.group),
                    ("Topic", found.message.topic),
                    ("Prepared", time_text(found.prepared_ms, zone)),
                    ("Checks", found.check_count),
                    ("Next check", time_text(found.next_check_ms, zone)),
                    ("Producers connected", found.producer_count),
                    ("Message id", found.message.message_id),
                    ("Keys", found.message.keys),
                ]
            )
        if may_change():
            with ui.row().classes("rg-row"):
                button("Commit", lambda: resolve(is_commit=True), icon="check")
                button("Roll back", lambda: resolve(is_commit=False), icon="undo", is_danger=True)
        body_of(who, found.message)

    async def resolve(*, is_commit: bool) -> None:
        lines = [
            "The message will be delivered, whatever its producer decides."
            if is_commit
            else "The message will never be delivered, whatever its producer decides."
        ]
        action = "Commit" if is_commit else "Roll back"
        if not await confirmed(f"{action} this half message?", lines, action):
            return

        async def work() -> None:
            answer = await ask_remoting(
                who, lambda remoting: half_wire.resolve(remoting, id_, is_commit=is_commit)
            )
            if not answer.is_resolved:
                raise Missed(f"half message {id_}", "it was decided before")

        if await attempt(work, "Committed." if is_commit else "Rolled back."):
            ui.navigate.to("/transactions")

    Live(lambda: ask_remoting(who, read), show)


@page("/transactions/kafka/{id_:path}", "Transaction")
def transaction(id_: str) -> None:
    """One transactional id."""
    who, zone = session(), reader_zone()

    async def load() -> Transaction:
        found = (await wire.describe(who.peer.cluster, [id_]))[id_]
        if isinstance(found, Refused):
            raise found
        return found

    def show(found: Transaction) -> None:
        with ui.column().classes("rg-panel"):
            facts(
                [
                    ("Id", found.id),
                    ("State", found.state),
                    ("Producer", f"{found.producer_id}, epoch {found.epoch}"),
                    ("Timeout", span_text(found.timeout_ms)),
                    ("Open since", time_text(found.start_ms, zone)),
                    ("Partitions", ", ".join(f"{t}:{p}" for t, p in found.places) or None),
                ]
            )
        if found.is_open and may_change():
            button("Abort", lambda: abort(found), is_danger=True)

    async def abort(found: Transaction) -> None:
        lines = ["Its producer is fenced: what it has sent in this transaction is discarded."]
        if not await confirmed(f"Abort the transaction of {id_}?", lines, "Abort"):
            return
        await attempt(lambda: wire.terminate(who.peer.cluster, found), "Aborted.")
        await live.refresh()

    live = Live(load, show, every_s=REFRESH_S)
