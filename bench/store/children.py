"""Parts of a benchmark that need their own process: its memory, its start, its death."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def ask(module: str, *arguments: str | Path | int) -> Any:
    """Run a module and return the JSON that it prints last."""
    done = subprocess.run(_command(module, arguments), check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def let_die(module: str, *arguments: str | Path | int) -> None:
    """Run a module that kills itself with SIGKILL."""
    done = subprocess.run(_command(module, arguments), check=False)
    assert done.returncode == -9, f"{module} ended with {done.returncode}"


def start(module: str, *arguments: str | Path | int) -> subprocess.Popen[str]:
    """Start a module whose standard output will be read."""
    return subprocess.Popen(_command(module, arguments), stdout=subprocess.PIPE, text=True)


def _command(module: str, arguments: tuple[str | Path | int, ...]) -> list[str]:
    return [sys.executable, "-m", module, *map(str, arguments)]


def tell(value: Any) -> None:
    """Print the value that `ask` returns."""
    print(json.dumps(value), flush=True)
