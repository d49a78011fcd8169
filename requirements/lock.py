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
    server = "requirements/server.lock"
    subprocess.run([*COMPILE, str(BUILD), "--extra", "server", "--upgrade", "-o", server], cwd=ROOT, check=True)
    dev = ["--extra", "server", "--extra", "pipeline", "--extra", "dev", "-c", server]
    subprocess.run([*COMPILE, str(BUILD), *dev, "--upgrade", "-o", "requirements/dev.lock"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
