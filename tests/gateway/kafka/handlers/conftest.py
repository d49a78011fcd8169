"""Shared by tests of handlers."""

import pytest

from rockgate.gateway.kafka.request import chunked


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice take any time, for tests that need a single one on a busy machine too."""
    monkeypatch.setattr(chunked, "SLICE_SECONDS", 3_600.0)
