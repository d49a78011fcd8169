"""Renew the lock files: `make lock`.

They carry hashes and no address, so they install from whatever index a machine is set up with.
The development lock is compiled under the server lock's pins: one environment serves both. The
third is a newer Spark for the compatibility tests' second run, in a folder of its own.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILE = [
    *(sys.executable, "-m", "uv", "pip", "compile", "--quiet"),
    *("--generate-hashes", "--universal", "--no-header", "--no-emit-index-url", "--no-annotate"),
    *("--python-version", "3.11"),
]
# The build back end stands in the locks because the project itself is installed without isolation.
BUILD = ROOT / "requirements" / "build.in"
PROJECT = ("pyproject.toml", str(BUILD))


def main() -> None:
    """Compile the locks, the server's first."""
    server, dev = "requirements/server.lock", "requirements/dev.lock"
    _compile(server, *PROJECT, "--extra", "server")
    extras = [
        f"--extra={name}" for name in ("server", "pipeline", "pipeline-connect", "console", "dev")
    ]
    _compile(dev, *PROJECT, *extras, "-c", server)
    _compile("requirements/console.lock", *PROJECT, "--extra=server", "--extra=console", "-c", dev)
    _compile("requirements/spark-next.lock", "requirements/spark-next.in")


def _compile(lock: str, *options: str) -> None:
    command = [*COMPILE, *options, "--upgrade", "-o", lock]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
