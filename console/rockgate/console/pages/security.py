"""Users with their credentials, and ACLs."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from nicegui import ui

from rockgate.cli.client.admin import acls, users
from rockgate.cli.client.admin.acls import AclFilter
from rockgate.cli.client.admin.users import ScramUser
from rockgate.cli.client.kafka.errors import ClientError, Refused, Unreachable, Unusable
from rockgate.console.session.peer import Peer
from rockgate.console.widgets.actions import attempt, button, confirmed, may_change
from rockgate.console.widgets.frame import page, peer
from rockgate.console.widgets.grid import Column, Row, grid
from rockgate.console.widgets.live import Live
from rockgate.gateway.security.grants import (
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.protocol.kafka.errors import ErrorCode

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS: Final = 8_192
PASSWORD_CHARS_MIN: Final = 8
USERS: Final = (Column("name", "User"), Column("mechanisms", "Credentials"))
ACLS: Final = (
    Column("principal", "Principal"),
    Column("permission", "Permission"),
    Column("operation", "Operation"),
    Column("resource", "Resource"),
    Column("pattern", "Pattern", is_wide=True),
    Column("host", "Host", is_wide=True),
)
_UNSAID: Final = ("ANY", "UNKNOWN", "MATCH")


class Page(NamedTuple):
    """What this user may see, and why the rest is missing."""

    users: list[ScramUser]
    users_problem: str
    acls: list[Grant]
    acls_problem: str
    has_authorizer: bool = True


@page("/security", "Security")
def security() -> None:
    """Users and ACLs."""
    server = peer()
    state: dict[str, Any] = {}

    async def load() -> Page:
        found_users, users_problem = await _or_problem(users.describe(server.cluster))
        try:
            found_acls, problem = await _or_problem(acls.describe(server.cluster, [AclFilter()]))
        except _NoAuthorizer:
            return Page(found_users, users_problem, [], "", has_authorizer=False)
        return Page(found_users, users_problem, found_acls, problem)

    def show(found: Page) -> None:
        state["acls"] = found.acls
        _title("Users")
        if found.users_problem:
            ui.label(found.users_problem).classes("rg-problem")
        else:
            _users(server, found.users, live)
        _title("ACLs")
        if not found.has_authorizer:
            ui.label("The server has no authorizer: every user may do everything.").classes(
                "rg-quiet"
            )
        elif found.acls_problem:
            ui.label(found.acls_problem).classes("rg-problem")
        else:
            _acls(server, found.acls, live)

    live = Live(load, show)


class _NoAuthorizer(Exception):
    """The server checks no rights."""


async def _or_problem(asked: Any) -> tuple[list[Any], str]:
    """What was asked for, or why this user may not see it."""
    try:
        return await asked, ""
    except Unreachable:
        raise
    except ClientError as error:
        if isinstance(error, Refused) and error.code == ErrorCode.SECURITY_DISABLED:
            raise _NoAuthorizer from None
        return [], str(error)


def _users(server: Peer, found: list[ScramUser], live: Live[Any]) -> None:
    rows = [Row(each.name, {"name": each.name, "mechanisms": _text(each)}) for each in found]
    table = grid(
        USERS,
        rows,
        label="Users",
        selects=bool(rows) and may_change(),
        empty="No users with SCRAM credentials.",
    )
    if not may_change():
        return

    async def remove() -> None:
        names = {str(each["id"]) for each in table.selected}
        chosen = [each for each in found if each.name in names]
        lines = [f"User {each.name} can no longer log in." for each in chosen]
        if not chosen or not await confirmed("Delete users?", lines, "Delete"):
            return

        async def work() -> None:
            for each in chosen:
                await users.remove(server.cluster, each)

        await attempt(work, "Deleted.")
        await live.refresh()

    with ui.row().classes("rg-row"):
        button("Add a user, or set a password", lambda: _set_password(server, live), icon="person")
        if rows:
            button("Delete the selected", remove, is_danger=True)


def _text(user: ScramUser) -> str:
    return ", ".join(f"{name} ({count:,} iterations)" for name, count in user.iterations.items())


async def _set_password(server: Peer, live: Live[Any]) -> None:
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        ui.label("Add a user, or set the password of one").classes("rg-subtitle")
        name = ui.input("User").props("outlined dense autofocus autocomplete=off")
        password = ui.input("Password", password=True).props(
            "outlined dense autocomplete=new-password"
        )

        async def work() -> None:
            user, secret = str(name.value or "").strip(), str(password.value or "")
            if not user or len(secret) < PASSWORD_CHARS_MIN:
                raise Unusable(
                    f"Enter a user and a password of at least {PASSWORD_CHARS_MIN} characters"
                )
            await users.set_password(server.cluster, user, secret, MECHANISMS, ITERATIONS)

        async def go() -> None:
            if await attempt(work, "The password is set."):
                dialog.close()
                await live.refresh()

        with ui.row().classes("rg-buttons"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button("Set", go)
    dialog.open()


def _acls(server: Peer, found: list[Grant], live: Live[Any]) -> None:
    rows = [
        Row(
            str(number),
            {
                "principal": each.principal,
                "permission": each.permission.name.lower(),
                "operation": each.operation.name.lower(),
                "resource": f"{each.resource_type.name.lower()} {each.resource_name}",
                "pattern": each.pattern_type.name.lower(),
                "host": each.host,
            },
        )
        for number, each in enumerate(found)
    ]
    table = grid(ACLS, rows, label="ACLs", selects=bool(rows) and may_change(), empty="No ACLs.")
    if not may_change():
        return

    async def remove() -> None:
        chosen = [found[int(each["id"])] for each in table.selected]
        if not chosen or not await confirmed("Remove ACLs?", [str(x) for x in chosen], "Remove"):
            return
        await attempt(lambda: _first(acls.delete(server.cluster, chosen)), "Removed.")
        await live.refresh()

    with ui.row().classes("rg-row"):
        button("Add an ACL", lambda: _add_acl(server, live), icon="add")
        if rows:
            button("Remove the selected", remove, is_danger=True)


async def _first(asked: Any) -> Refused | None:
    """The first refusal of many."""
    return next((error for error in (await asked).values() if error is not None), None)


async def _add_acl(server: Peer, live: Live[Any]) -> None:
    def choice(label: str, kind: Any, value: str) -> Any:
        names = [each.name for each in kind if each.name not in _UNSAID]
        return ui.select(names, label=label, value=value).props("outlined dense")

    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        ui.label("Add an ACL").classes("rg-subtitle")
        principal = ui.input("Principal", value="User:").props("outlined dense autofocus")
        with ui.row().classes("rg-row"):
            permission = choice("Permission", Permission, "ALLOW")
            operation = choice("Operation", AclOperation, "READ")
        with ui.row().classes("rg-row"):
            kind = choice("Resource", AclResourceType, "TOPIC")
            name = ui.input("Name, or * for all").props("outlined dense").classes("rg-grow")
            pattern = choice("Pattern", PatternType, "LITERAL")
        host = ui.input("Host", value="*").props("outlined dense")

        async def work() -> Refused | None:
            grant = Grant(
                AclResourceType[str(kind.value)],
                str(name.value or "").strip(),
                PatternType[str(pattern.value)],
                str(principal.value or "").strip(),
                str(host.value or "*").strip(),
                AclOperation[str(operation.value)],
                Permission[str(permission.value)],
            )
            return await _first(acls.create(server.cluster, [grant]))

        async def go() -> None:
            if await attempt(work, "Added."):
                dialog.close()
                await live.refresh()

        with ui.row().classes("rg-buttons"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button("Add", go)
    dialog.open()


def _title(text: str) -> Any:
    return ui.label(text).classes("rg-subtitle").props('role="heading" aria-level="2"')
