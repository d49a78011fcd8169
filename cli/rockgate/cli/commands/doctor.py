"""`rockgate doctor`: what keeps a server from starting or running well, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rockgate.cli.app import server_options

if TYPE_CHECKING:
    from rockgate.cli.doctor.finding import Finding
    from rockgate.gateway.compose.config import Gathered

EXAMPLES = """
[bold]Examples[/bold]

rockgate doctor

rockgate doctor --config /etc/rockgate.toml --data-dir /srv/rockgate

rockgate doctor --json

[bold]Exit status[/bold]

0: nothing is in the way; there may be warnings. 1: a problem. 2: usage error, or a wrong setting.
"""
READY_SECONDS = 3.0

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def doctor(
    config: server_options.ConfigFile = None,
    data_dir: server_options.DataDir = None,
    kafka: server_options.Kafka = None,
    remoting: server_options.Remoting = None,
    namesrv: server_options.Namesrv = None,
    http: server_options.Http = None,
    set_: server_options.Set = None,
    json: Json = False,
) -> None:
    """Check settings, data directory, disk, limits, clock and ports, and say what to do.

    Accepts the flags of `serve` and starts nothing. Beside a running server it also asks whether
    that one is ready.
    """
    flags = server_options.flags(
        data_dir=data_dir,
        kafka=kafka,
        remoting=remoting,
        namesrv=namesrv,
        http=http,
        advertise_kafka=None,
        advertise_remoting=None,
        log_level=None,
    )
    gathered = server_options.gathered(config=config, flags=flags, pairs=set_ or ())
    findings = _examine(gathered)
    _print(findings, is_json=json)
    if any(each.status == "problem" for each in findings):
        raise typer.Exit(1)


def _examine(gathered: Gathered) -> list[Finding]:
    from rockgate.cli.doctor import directory, listeners, machine
    from rockgate.cli.doctor.finding import Finding, Status, problem, warning
    from rockgate.gateway.compose.listeners import endpoints_of, refuse_anonymous, tls_contexts
    from rockgate.gateway.runtime.errors import ConfigError, StartError

    config = gathered.config
    found: list[Finding] = [
        Finding(check="settings", status=Status.OK, found="Every setting is known and valid.")
    ]
    found += [
        warning("settings", f"{old} is an old name.", f"Call it {new}.")
        for old, new in sorted(gathered.deprecated.items())
    ]
    found += machine.check()
    found += directory.check(config.server.data_dir, config.store)
    is_running = directory.has_server(config.server.data_dir)
    endpoints = []
    try:
        wanted = endpoints_of(config, gathered.given)
        endpoints = [endpoint for each in wanted.values() for endpoint in each]
        refuse_anonymous(endpoints, config)
        tls_contexts(endpoints, config)
    except (ConfigError, StartError) as error:
        problems = error.problems if isinstance(error, ConfigError) else [str(error)]
        found += [problem("security", each, "See docs/guide/security.md.") for each in problems]
    found += listeners.check(endpoints, is_running=is_running, timeout_s=READY_SECONDS)
    return found


def _print(findings: list[Finding], *, is_json: bool) -> None:
    from rockgate.cli.text import tables
    from rockgate.cli.text.values import plural

    if is_json:
        rows = [
            {
                "check": each.check,
                "status": each.status.value,
                "found": each.found,
                "remedy": each.remedy or None,
            }
            for each in findings
        ]
        tables.echo_json({"findings": rows, "errors": []})
        return
    tables.table(
        ("check", "status", "what was found, and what to do"),
        [
            (each.check, each.status.value, f"{each.found} {each.remedy}".strip())
            for each in findings
        ],
    )
    problems = sum(each.status == "problem" for each in findings)
    warnings = sum(each.status == "warning" for each in findings)
    tables.note(f"{plural(problems, 'problem')}, {plural(warnings, 'warning')}.")
