"""The frame around every page: navigation, search, theme, and the session of who looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from nicegui import ui

from rockgate.cli.client.kafka.errors import ClientError
from rockgate.console.web.guard import STYLE
from rockgate.console.widgets.times import TZ_COOKIE

if TYPE_CHECKING:
    from rockgate.console.session.peer import Peer
    from rockgate.console.session.sessions import Session, Sessions
    from rockgate.console.settings import Servers

THEME_COOKIE: Final = "rockgate_theme"
SEARCHED_MAX: Final = 20
_HEAD: Final = f"""<link rel="stylesheet" href="{STYLE}">
<script>
(() => {{
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.cookie.includes("{TZ_COOKIE}=" + encodeURIComponent(zone));
  document.cookie = "{TZ_COOKIE}=" + encodeURIComponent(zone) + ";path=/;SameSite=Strict";
  if (!known && document.cookie.includes("{TZ_COOKIE}=")) location.reload();
}})();
</script>"""


class Entry(NamedTuple):
    """One line of the navigation."""

    path: str
    title: str
    icon: str
    is_extra: bool = False
    """Whether only rockgate has it."""


NAVIGATION: Final = (
    Entry("/", "Overview", "monitoring"),
    Entry("/topics", "Topics", "view_list"),
    Entry("/messages", "Messages", "mail"),
    Entry("/produce", "Produce", "send"),
    Entry("/groups", "Groups", "groups"),
    Entry("/delayed", "Delayed", "schedule", True),
    Entry("/transactions", "Transactions", "swap_horiz"),
    Entry("/dead-letters", "Dead letters", "report", True),
    Entry("/clients", "Clients", "devices"),
    Entry("/security", "Security", "lock"),
    Entry("/cluster", "Cluster", "dns"),
    Entry("/log", "Log", "storage"),
)
_ICONS: Final = {
    "monitoring": "insights",
}


class _Hit(NamedTuple):
    """What a search has found."""

    kind: str
    name: str
    target: str


class _Shared:
    """What pages are built with; there is one console in a process."""

    sessions: Sessions
    servers: Servers


def use_sessions(sessions: Sessions, servers: Servers) -> None:
    """Set where pages find their session."""
    _Shared.sessions = sessions
    _Shared.servers = servers


def session() -> Session:
    """The session of the page that is built."""
    request = ui.context.client.request
    found = _Shared.sessions.of(request.cookies.get(_Shared.sessions.cookie))
    # The guard lets no request without a session through.
    assert found is not None
    return found


def peer() -> Peer:
    """The server of the page that is built."""
    return session().peer


def page(path: str, title: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A page of the console, in its frame."""

    def decorate(build: Callable[..., None]) -> Callable[..., None]:
        @ui.page(path, title=f"{title} · rockgate")
        @wraps(build)
        def framed(**arguments: Any) -> None:
            with frame(title, path):
                build(**arguments)

        return framed

    return decorate


@contextmanager
def frame(title: str, path: str) -> Iterator[None]:
    """The content of a page."""
    who = session()
    client = ui.context.client
    who.pages.add(client)
    client.on_delete(lambda: who.pages.discard(client))
    ui.add_head_html(_HEAD)
    cookies = ui.context.client.request.cookies
    theme = cookies.get(THEME_COOKIE, "auto")
    dark = ui.dark_mode(None if theme not in ("dark", "light") else theme == "dark")
    ui.colors(primary="#2563a8", secondary="#52606d", accent="#8a4fbf", positive="#1c7d46")
    with ui.left_drawer(value=False, bordered=True).props(
        "width=210 breakpoint=1000 show-if-above"
    ) as drawer:
        drawer.classes("rg-drawer")
        _navigation(who, path)
    with ui.header(bordered=True).classes("rg-header"):
        menu = ui.button(icon="menu", on_click=drawer.toggle).props("flat dense color=inherit")
        menu.props('aria-label="Menu"').classes("rg-menu")
        ui.link("rockgate", "/").classes("rg-brand")
        ui.label(str(_Shared.servers)).classes("rg-server")
        ui.space()
        _search(who)
        _theme_button(dark, theme)
        if who.is_read_only:
            ui.badge("read-only").props("color=orange-9")
        if _Shared.sessions.demands_login:
            _user(who.username)
    with ui.column().classes("rg-page") as content:
        content.props('role="main"')
        ui.label(title).classes("rg-title").props('role="heading" aria-level="1"')
        yield


def link_to(*parts: str | int, **query: str | int | None) -> str:
    """A path of the console with its parts quoted."""
    path = "/" + "/".join(quote(str(part), safe="") for part in parts)
    given = [
        f"{name}={quote(str(value), safe='')}" for name, value in query.items() if value is not None
    ]
    return path + ("?" + "&".join(given) if given else "")


def _navigation(who: Session, path: str) -> None:
    first = path.split("/")[1]
    extras: list[Any] = []
    with ui.element("nav").props('aria-label="Pages"').classes("rg-nav"):
        for entry in NAVIGATION:
            is_here = entry.path.split("/")[1] == first
            link = ui.link(target=entry.path).classes("rg-nav-link")
            if is_here:
                link.classes("rg-nav-here").props('aria-current="page"')
            with link:
                ui.icon(_ICONS.get(entry.icon, entry.icon)).props('aria-hidden="true"')
                ui.label(entry.title)
            if entry.is_extra:
                link.visible = who.peer.offers.extras is not False
                extras.append(link)

    def renew() -> None:
        for each in extras:
            each.visible = who.peer.offers.extras is not False

    ui.timer(2.0, renew)


def _user(username: str) -> None:
    with (
        ui.element("form").props('method="post" action="/logout"').classes("rg-user"),
        ui.element("button").props('type="submit" title="Log out"').classes("rg-logout"),
    ):
        ui.label(username)
        ui.icon("logout").props('aria-hidden="true"')


def _theme_button(dark: Any, theme: str) -> None:
    order = {"auto": "dark", "dark": "light", "light": "auto"}
    icons = {"auto": "brightness_auto", "dark": "dark_mode", "light": "light_mode"}
    state = {"theme": theme if theme in order else "auto"}

    def turn() -> None:
        state["theme"] = order[state["theme"]]
        dark.value = None if state["theme"] == "auto" else state["theme"] == "dark"
        button.props(f"icon={icons[state['theme']]}")
        button.props(f'aria-label="Theme: {state["theme"]}"')
        ui.run_javascript(
            f'document.cookie = "{THEME_COOKIE}={state["theme"]};path=/;max-age=31536000;'
            'SameSite=Strict"'
        )

    button = ui.button(icon=icons[state["theme"]], on_click=turn)
    button.props(f'flat dense round color=inherit aria-label="Theme: {state["theme"]}"')


async def _hits(who: Session, text: str) -> list[_Hit]:
    """Topics and groups with a text in their names; those that begin with it come first."""
    names = [("topic", name) for name in (await who.peer.topics.get()).topics]
    names += [("group", each.group_id) for each in await who.peer.groups.get()]
    found = [
        _Hit(kind, name, link_to(f"{kind}s", name)) for kind, name in names if text in name.lower()
    ]
    return sorted(found, key=lambda each: (not each.name.lower().startswith(text), each.name))


def _search(who: Session) -> None:
    """Search for topics and groups, by a button or the key `/`."""
    with ui.dialog().props("position=top") as dialog, ui.card().classes("rg-search"):
        asked = ui.input(placeholder="Topic or group").props(
            'autofocus outlined dense debounce=150 aria-label="Search topics and groups"'
        )
        results = ui.column().classes("rg-search-results")

    async def look() -> None:
        text = str(asked.value or "").strip().lower()
        found: list[_Hit] = []
        problem = ""
        if text:
            try:
                found = await _hits(who, text)
                if not found:
                    # What was created a moment ago may not be in the lists that are cached.
                    who.peer.topics.forget()
                    who.peer.groups.forget()
                    found = await _hits(who, text)
            except ClientError as error:
                problem = str(error)
        results.clear()
        with results:
            if problem:
                ui.label(problem).classes("rg-problem")
            for kind, name, target in found[:SEARCHED_MAX]:
                with ui.link(target=target).classes("rg-search-result"):
                    ui.label(name)
                    ui.label(kind).classes("rg-quiet")
            if text and not found and not problem:
                ui.label("Nothing found.").classes("rg-quiet")
            if len(found) > SEARCHED_MAX:
                ui.label(f"{len(found) - SEARCHED_MAX:,} more.").classes("rg-quiet")

    async def go() -> None:
        await look()
        first = next(iter(results.default_slot.children), None)
        if isinstance(first, ui.link):
            ui.navigate.to(str(first.props["href"]))

    asked.on_value_change(look)
    asked.on("keydown.enter", go)

    def show(event: Any) -> None:
        if event.action.keydown and event.key == "/" and not event.action.repeat:
            dialog.open()

    ui.keyboard(on_key=show)
    button = ui.button(icon="search", on_click=dialog.open)
    button.props('flat dense round color=inherit aria-label="Search (/)"')
