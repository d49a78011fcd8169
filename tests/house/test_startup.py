"""What a server loads when it starts: seconds of every start are in here."""

import subprocess
import sys

import pytest

LOAD = "import sys, rockgate.gateway.compose.app; print(*sys.modules, sep='\\n')"


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOAD], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        # The reference codecs are for tests; the hand-written and the generated ones do the work.
        "construct",
        # The command line's.
        "typer",
        "rich",
        "pydantic",
        # A client's.
        "rockgate.sdk",
    ],
)
def test_a_server_starts_without(module: str, loaded: set[str]) -> None:
    assert "rockgate.gateway.compose.app" in loaded
    assert {name for name in loaded if name == module or name.startswith(f"{module}.")} == set()
