"""A peer's jars for tests: skipped with a reason if they cannot be downloaded, or without a JDK."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.peers import jars
from bench.peers.errors import FetchFailed, ToolMissing
from tests.gates import is_ci


@contextmanager
def brought(peer: str) -> Iterator[None]:
    """Download the jars of a peer before the block runs."""
    try:
        jars.fetch(peer)
    except (ToolMissing, FetchFailed) as error:
        if is_ci(os.environ):
            raise
        pytest.skip(f"no jars of {peer}: {error}")
    yield
