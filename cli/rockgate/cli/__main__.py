"""The `rockgate` command, also `python -m rockgate.cli`.

`pip install rockgate` alone is the SDK; commands come with the extra `cli`, and those that run a
server with `server`. Where one is missing, it says what to install. Commands of other packages,
such as `pipeline`, need their package's extra and neither of the two; `--help` and `--version` need
nothing.
"""

import gc
import sys
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec

CLI_MODULES = ("cramjam", "crc32c", "rich", "typer")
"""What the extra `cli` installs, and every command needs."""
SERVER_MODULES = ("uvloop",)
"""What the extra `server` installs in addition, for `SERVER_COMMANDS`."""
SERVER_COMMANDS = ("serve", "namesrv", "gateway")
YOUNG_OBJECTS = 100_000
"""How many new objects cause a garbage collection; Python's 700 cause hundreds while modules are
imported, none of which finds anything. A server sets thresholds of its own once it runs."""


def main() -> None:
    """Run the command line; exits with status 2 where an extra is missing."""
    gc.set_threshold(YOUNG_OBJECTS)
    arguments = sys.argv[1:]
    is_server = bool(arguments) and arguments[0] in SERVER_COMMANDS
    missing = [name for name in CLI_MODULES if find_spec(name) is None]
    if missing:
        _run_without_extra(arguments, missing)
    if is_server:
        missing += [name for name in SERVER_MODULES if find_spec(name) is None]
    if missing:
        what, extra = ("server", "server") if is_server else ("command line", "cli")
        sys.stderr.write(
            f"rockgate: The {what} is not installed ({', '.join(missing)} missing)."
            f' Install it with: pip install "rockgate[{extra}]"\n'
        )
        raise SystemExit(2)
    from rockgate.cli.commands import app  # The command line needs what was just looked for.

    app()


def _run_without_extra(arguments: list[str], missing: list[str]) -> None:
    """Handle what needs no extra; return for everything else."""
    if arguments == ["--version"]:
        sys.stdout.write(f"rockgate {_version()}\n")
    elif arguments in (["--help"], ["-h"]):
        sys.stdout.write(_help(missing))
    else:
        _run_other_room(arguments)
        return
    raise SystemExit(0)


def _version() -> str:
    try:
        return version("rockgate")
    except PackageNotFoundError:
        return "(not installed as a package)"


def _help(missing: list[str]) -> str:
    lines = [
        "Usage: rockgate COMMAND ...",
        "",
        f"The commands are not installed ({', '.join(missing)} missing).",
        'Client commands (topics, produce, consume, ...): pip install "rockgate[cli]"',
        'Client commands and the server (serve, namesrv, gateway): pip install "rockgate[server]"',
        "",
        "Other commands, each with its own --help:",
    ]
    for name in sorted({entry.name for entry in entry_points(group="rockgate.commands")}):
        is_there = find_spec("typer") is not None
        lines.append(f"  {name}" + ("" if is_there else f'  (pip install "rockgate[{name}]")'))
    lines += ["", "The client library is `rockgate.sdk`.", ""]
    return "\n".join(lines)


def _run_other_room(arguments: list[str]) -> None:
    """Run a command of another package, which may be installed without the server."""
    entries = entry_points(group="rockgate.commands", name=arguments[0]) if arguments else ()
    for entry in entries:
        try:
            command = entry.load()
        except ModuleNotFoundError as error:
            # The extra that a package's commands need has the same name as they have.
            sys.stderr.write(
                f"rockgate: {entry.name} is not installed ({error.name} missing)."
                f' Install it with: pip install "rockgate[{entry.name}]"\n'
            )
            raise SystemExit(2) from None
        command(args=arguments[1:], prog_name=f"rockgate {entry.name}")


if __name__ == "__main__":
    main()
