"""`rockgate secure renew`: another server certificate of the same authority."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rockgate.cli.app import runner, server_options
from rockgate.cli.commands.secure import folder, init
from rockgate.cli.commands.secure.folder import Folder, FolderError
from rockgate.cli.text.echo import say

DAYS = 397
EXAMPLES = """
[bold]Examples[/bold]

rockgate secure renew

rockgate secure renew --dir /etc/rockgate --host kafka-2.example
"""


def renew(
    dir_: init.Dir = Path("secure"),
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", metavar="NAME", help="Another name that clients connect to; repeatable."
        ),
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3_650, help="How long it is valid.")] = DAYS,
    json: runner.Json = False,
) -> None:
    """Issue another server certificate, for the same names and more.

    A running server takes it within seconds, without a restart; clients notice nothing.
    """
    from rockgate.gateway.security.tls import authority as tls

    place = Folder(dir_)
    try:
        authority = init.read_authority(place)
        pem = place.read(folder.CERTIFICATE)
        known = tls.hosts_of(pem) if pem else list(init.LOCAL)
        hosts = [*dict.fromkeys([*known, *(host or ())])]
        issued = runner.checked(
            "--host", lambda names: authority.issue(names, tls.now_utc(), days), hosts
        )
        place.write({folder.KEY: issued.key, folder.CERTIFICATE: issued.certificate}, replaces=True)
    except (FolderError, tls.InvalidCertificate) as error:
        server_options.fail([str(error)], init.START_STATUS)
    until = tls.expiry_of(issued.certificate)
    row = {
        "path": str(place.file(folder.CERTIFICATE)),
        "hosts": hosts,
        "expires_ms": int(until.timestamp() * 1000),
    }
    runner.finish(
        {"certificates": [row]},
        is_json=json,
        show=lambda: say(
            f"Wrote {row['path']}, valid until {until:%Y-%m-%d} for {', '.join(hosts)}."
        ),
    )
