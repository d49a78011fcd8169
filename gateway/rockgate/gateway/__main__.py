"""The `rockgate` command, also `python -m rockgate.gateway`.

Where only the client is installed, it says what to install.
"""

import sys
from importlib.util import find_spec

# What the extra `server` brings; `pip install rockgate` alone is the client.
SERVER_MODULES = ("cramjam", "crc32c", "prometheus_client", "rich", "typer", "uvloop")


def main() -> None:
    """Run the command line; exits with status 2 where the extra `server` is missing."""
    missing = [name for name in SERVER_MODULES if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"rockgate: the server is not installed ({', '.join(missing)} missing);"
            ' install it with: pip install "rockgate[server]"\n'
        )
        raise SystemExit(2)
    from rockgate.gateway.cli import app  # The command line needs what was just looked for.

    app()


if __name__ == "__main__":
    main()
