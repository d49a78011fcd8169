"""Renew the two lock files: `make lock`.

Both carry hashes and no address, so they install from whatever index a machine is set up with.
The development lock is compiled under the server lock's pins: one environment serves both.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILE = [
    *(sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--quiet"),
    *("--generate-hashes", "--universal", "--no-header", "--no-emit-index-url", "--no-annotate"),
    *("--python-version", "3.11"),
]
# The build back end stands in the locks because the project itself is installed without isolation.
BUILD = ROOT / "requirements" / "build.in"


def main() -> None:
    """Compile both locks, the server's first."""
    server, dev = "requirements/server.lock", "requirements/dev.lock"
    _compile(server, "--extra", "server")
    _compile(dev, "--extra", "server", "--extra", "pipeline", "--extra", "dev", "-c", server)


def _compile(lock: str, *options: str) -> None:
    command = [*COMPILE, str(BUILD), *options, "--upgrade", "-o", lock]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
