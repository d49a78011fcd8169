"""Dead letters: the groups that have some, those of a group, and sending them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nicegui import ui

from rockgate.cli.admin import dead_letter_resends as resends
from rockgate.cli.admin.dead_letter_resends import Outcome
from rockgate.cli.client.kafka.errors import ClientError, Missed
from rockgate.cli.client.remoting import dead_letters as wire
from rockgate.cli.client.remoting.dead_letters import Filter, LetterId
from rockgate.cli.text.values import size_text
from rockgate.console.pages.delayed import ask_remoting, body_of
from rockgate.console.session.sessions import Session
from rockgate.console.widgets.actions import button, confirmed, may_change, say_error
from rockgate.console.widgets.frame import link_to, page, session
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.progress import Progress, Report
from rockgate.console.widgets.times import exact, reader_zone, time_text
from rockgate.protocol.remoting.bodies.admin import DeadLetter, DeadLetterQueue

REFRESH_S: Final = 5.0
LIMIT: Final = 100
PREVIEW: Final = 16_384
ACCOUNT_MAX: Final = 500
REASONS: Final = {
    "": "any reason",
    "tries": "tries used up",
    "asked": "asked for",
    "ordered": "ordered",
}
QUEUES: Final = (
    Column("group", "Group"),
    Column("count", "Dead letters", is_number=True),
    Column("oldest", "Oldest", is_wide=True),
    Column("newest", "Newest"),
)
LETTERS: Final = (
    Column("dead", "Since"),
    Column("topic", "Topic"),
    Column("reason", "Reason"),
    Column("tries", "Tries", is_number=True, is_wide=True),
    Column("keys", "Keys", is_mono=True, is_wide=True),
    Column("size", "Size", is_number=True, is_wide=True),
    Column("resent", "Resent"),
)
ACCOUNT: Final = (
    Column("id", "Dead letter", is_mono=True),
    Column("to", "Sent as", is_mono=True),
    Column("problem", "Problem"),
)


@page("/dead-letters", "Dead letters")
def groups() -> None:
    """The groups with dead letters."""
    who, zone = session(), reader_zone()

    def show(found: list[DeadLetterQueue]) -> None:
        rows = [
            Row(
                f"{each.group}-{each.queue}",
                {
                    "group": each.group,
                    "count": each.end - each.start,
                    "oldest": time_text(each.oldest_ms, zone),
                    "newest": time_text(each.newest_ms, zone),
                },
                {"group": link_to("dead-letters", each.group)},
            )
            for each in found
        ]
        grid(QUEUES, rows, label="Groups with dead letters", empty="No dead letters.")

    Live(lambda: ask_remoting(who, wire.queues), show, every_s=REFRESH_S)


@page("/dead-letters/{group}", "Dead letters of a group")
def letters(group: str, topic: str = "", key: str = "", reason: str = "", start: int = 0) -> None:
    """The dead letters of a group that match, oldest first."""
    LettersPage(session(), group, Filter(topic or None, key or None, reason or None), start).build()


class LettersPage:
    """One group's dead letters, and a resend with its progress."""

    def __init__(self, who: Session, group: str, wanted: Filter, start: int) -> None:
        self._who, self._group, self._wanted, self._start = who, group, wanted, start
        self._zone = reader_zone()
        self._table: Any = None

    def build(self) -> None:
        """Filters, the table, and what can be done."""
        ui.label(self._group).classes("rg-subtitle").props('role="heading" aria-level="2"')
        fields = {"topic": self._wanted.topic or "", "key": self._wanted.key or ""}
        fields["reason"] = self._wanted.reason or ""
        with ui.row().classes("rg-row"):
            for name, label in (("topic", "Topic"), ("key", "Key")):
                ui.input(label).bind_value(fields, name).props("outlined dense")
            ui.select(REASONS, label="Reason").bind_value(fields, "reason").props("outlined dense")
            button("Filter", lambda: self._filter(fields))
        self._live = Live(lambda: ask_remoting(self._who, self._read), self._show)
        if may_change():
            with ui.row().classes("rg-row"):
                button("Resend the selected", self._resend_selected, icon="replay")
                button("Resend all that match", self._resend_all).props("outline")
        self._progress = Progress("Resent", "dead letters")
        self._account = ui.column().classes("rg-live")

    def _filter(self, fields: dict[str, str]) -> None:
        given = {name: each or None for name, each in fields.items()}
        ui.navigate.to(link_to("dead-letters", self._group, **given))

    async def _read(self, remoting: Any) -> list[DeadLetter]:
        found: list[DeadLetter] = []
        for queue in await wire.queues(remoting, self._group):
            async for letter in wire.read(remoting, queue, self._wanted, start=self._start):
                found.append(letter)
                if len(found) > LIMIT:
                    return found
        return found

    def _show(self, found: list[DeadLetter]) -> None:
        rows = [
            Row(
                str(wire.id_of(each)),
                {
                    "dead": time_text(each.dead_ms, self._zone),
                    "topic": each.origin_topic,
                    "reason": each.reason,
                    "tries": each.message.reconsume_times,
                    "keys": each.message.keys,
                    "size": size_text(each.message.size),
                    "resent": "yes" if each.is_resent else "no",
                },
                {"dead": link_to("dead-letters", each.group, each.queue, each.offset)},
                {"dead": exact(each.dead_ms)},
            )
            for each in found[:LIMIT]
        ]
        self._table = grid(
            LETTERS,
            rows,
            label="Dead letters",
            selects=may_change(),
            empty="No dead letters match.",
        )
        if len(found) > LIMIT:
            more = link_to(
                "dead-letters",
                self._group,
                topic=self._wanted.topic,
                key=self._wanted.key,
                reason=self._wanted.reason,
                start=found[LIMIT].offset,
            )
            ui.link("Later ones", more).classes("rg-link")

    async def _resend_selected(self) -> None:
        chosen = self._table.selected if self._table is not None else []
        await self._ask([wire.read_id(str(each["id"])) for each in chosen], is_again=True)

    async def _resend_all(self) -> None:
        try:
            named = await ask_remoting(
                self._who,
                lambda remoting: resends.matching(
                    remoting, self._group, self._wanted, is_again=False
                ),
            )
        except ClientError as error:
            say_error(error)
            return
        await self._ask(named, is_again=False)

    async def _ask(self, named: list[LetterId], *, is_again: bool) -> None:
        if not named:
            ui.notify("No dead letters to resend.")
            return
        lines = [
            f"{len(named):,} dead letters of {self._group} are sent, unchanged, to the topics they"
            " came from. They stay here, marked as resent."
        ]
        if await confirmed("Resend dead letters?", lines, "Resend"):
            self._progress.start(lambda report: self._resend(named, report, is_again=is_again))

    async def _resend(self, named: list[LetterId], report: Report, *, is_again: bool) -> str:
        if self._who.is_read_only:
            return "The console is read-only."
        done = Outcomes(lambda count: report(count, len(named)))
        report(0, len(named))
        problem = ""
        try:
            await ask_remoting(
                self._who,
                lambda remoting: resends.resend(
                    remoting, named, None, done, is_again=is_again, is_dry_run=False
                ),
            )
        except ClientError as error:
            problem = f" {error}"
        finally:
            # What was sent is listed after a stop, too.
            self._tell(done)
        self._live.reload()
        sent = sum(each.error is None for each in done)
        return f"Resent {sent:,} of {len(named):,}.{problem}"

    def _tell(self, done: list[Outcome]) -> None:
        """The account of what was resent."""
        self._account.clear()
        with self._account:
            _title("Resent just now")
            rows = [_outcome_row(each) for each in done[:ACCOUNT_MAX]]
            grid(ACCOUNT, rows, label="Resent", empty="Nothing was resent.")
            if len(done) > ACCOUNT_MAX:
                ui.label(f"{len(done) - ACCOUNT_MAX:,} more.").classes("rg-quiet")


class Outcomes(list[Outcome]):
    """A list that says when it grows."""

    def __init__(self, grown: Callable[[int], None]) -> None:
        super().__init__()
        self._grown = grown

    def append(self, each: Outcome) -> None:
        """Add one."""
        super().append(each)
        self._grown(len(self))


def _outcome_row(each: Outcome) -> Row:
    answer = each.resend
    if answer is None or each.error is not None:
        return Row(str(each.id), {"id": each.id, "to": None, "problem": str(each.error)})
    place = f"{answer.topic}/{answer.queue}/{answer.offset}"
    link = link_to("messages", answer.topic or "", answer.queue, answer.offset)
    return Row(str(each.id), {"id": each.id, "to": place, "problem": None}, {"to": link})


def _title(text: str) -> None:
    ui.label(text).classes("rg-subtitle").props('role="heading" aria-level="2"')


@page("/dead-letters/{group}/{queue}/{offset}", "Dead letter")
def letter(group: str, queue: int, offset: int) -> None:
    """One dead letter: where it came from, why it is here, and its contents."""
    who, zone, id_ = session(), reader_zone(), LetterId(group, queue, offset)

    async def read(remoting: Any) -> DeadLetter:
        found = await wire.show(remoting, id_, preview=PREVIEW)
        if found is None:
            raise Missed(str(id_), "there is no such dead letter")
        return found

    def show(found: DeadLetter) -> None:
        place = f"{found.origin_topic}/{found.origin_queue}/{found.origin_offset}"
        with ui.column().classes("rg-panel"):
            facts(
                [
                    ("Group", found.group),
                    ("From", place),
                    ("First failed", time_text(found.failed_ms, zone)),
                    ("Dead letter since", time_text(found.dead_ms, zone)),
                    ("Reason", found.reason),
                    ("Tries", found.message.reconsume_times),
                    ("Resent", "yes" if found.is_resent else "no"),
                    ("Message id", found.origin_message_id or found.message.message_id),
                    ("Keys", found.message.keys),
                    ("Tag", found.message.tags),
                ]
            )
        ui.link("All of this group", link_to("dead-letters", group)).classes("rg-link")
        body_of(who, found.message)

    Live(lambda: ask_remoting(who, read), show)
