"""The wheel that several tests use, built once and without a network."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.house.checkout import ROOT


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # Directly with the build backend: no isolated environment, so no network.
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built
