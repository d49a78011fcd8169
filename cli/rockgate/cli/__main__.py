"""The `rockgate` command, also `python -m rockgate.cli`.

Where only the client is installed, it says what to install. Commands of other rooms, such as
`pipeline`, need what those rooms need and not the server; `--help` and `--version` need nothing.
"""

import sys
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec

# What the extra `server` brings; `pip install rockgate` alone is the client.
SERVER_MODULES = ("cramjam", "crc32c", "prometheus_client", "rich", "typer", "uvloop")


def main() -> None:
    """Run the command line; exits with status 2 where the extra `server` is missing."""
    missing = [name for name in SERVER_MODULES if find_spec(name) is None]
    if missing:
        _run_without_server(sys.argv[1:], missing)
        sys.stderr.write(
            f"rockgate: the server is not installed ({', '.join(missing)} missing);"
            ' install it with: pip install "rockgate[server]"\n'
        )
        raise SystemExit(2)
    from rockgate.cli.commands import app  # The command line needs what was just looked for.

    app()


def _run_without_server(arguments: list[str], missing: list[str]) -> None:
    """Answer what can be answered; return if that takes the server."""
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
        "The server and its commands (serve, topics, produce, consume, ...) are not installed: "
        f"{', '.join(missing)} missing.",
        'They come with: pip install "rockgate[server]"',
        "",
        "Commands of other parts, each with a --help of its own:",
    ]
    for name in sorted({entry.name for entry in entry_points(group="rockgate.commands")}):
        is_there = find_spec("typer") is not None
        lines.append(f"  {name}" + ("" if is_there else f'  (pip install "rockgate[{name}]")'))
    lines += ["", "The client is a library: see `rockgate.sdk`.", ""]
    return "\n".join(lines)


def _run_other_room(arguments: list[str]) -> None:
    """Run a command of another room, which may be installed without the server."""
    entries = entry_points(group="rockgate.commands", name=arguments[0]) if arguments else ()
    for entry in entries:
        try:
            command = entry.load()
        except ModuleNotFoundError as error:
            # The extra that brings a room's commands to life is called as they are.
            sys.stderr.write(
                f"rockgate: {entry.name} is not installed ({error.name} missing);"
                f' install it with: pip install "rockgate[{entry.name}]"\n'
            )
            raise SystemExit(2) from None
        command(args=arguments[1:], prog_name=f"rockgate {entry.name}")


if __name__ == "__main__":
    main()
