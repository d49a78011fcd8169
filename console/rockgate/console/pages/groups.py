"""The list of groups."""

from __future__ import annotations

from rockgate.cli.admin.metrics import Metrics
from rockgate.console.widgets.frame import link_to, page, peer
from rockgate.console.widgets.grid import Column, Row, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.paging import Place, filter_input, pager

COLUMNS = (
    Column("group", "Group"),
    Column("state", "State"),
    Column("kind", "Kind", is_wide=True),
    Column("protocol", "Protocol", is_wide=True),
    Column("lag", "Lag", is_number=True),
)
REFRESH_S = 5.0


@page("/groups", "Groups")
def groups(q: str = "", page: int = 1) -> None:
    """Groups by name, a page at a time."""
    server, place = peer(), Place("groups", q, page)

    async def load() -> tuple[int, list[Row]]:
        wanted = place.q.lower()
        found = [each for each in await server.groups.get() if wanted in each.group_id.lower()]
        lags = (server.metrics or Metrics()).by("rockgate_group_lag", "group")
        rows = [
            Row(
                each.group_id,
                {
                    "group": each.group_id,
                    "state": each.state,
                    "kind": each.kind.lower(),
                    "protocol": each.protocol_type,
                    "lag": int(lags[each.group_id]) if each.group_id in lags else None,
                },
                {"group": link_to("groups", each.group_id)},
            )
            for each in place.rows(found)
        ]
        return len(found), rows

    def show(found: tuple[int, list[Row]]) -> None:
        count, rows = found
        pager(place, count, lambda: live.reload(), "groups")
        grid(COLUMNS, rows, label="Groups", empty="No groups.")

    filter_input(place, "Filter groups", lambda: live.reload())
    live = Live(load, show, every_s=REFRESH_S)
