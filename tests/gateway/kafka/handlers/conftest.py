"""What tests of handlers share."""

import pytest

from rockgate.gateway.kafka.request import chunked


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice take as long as it likes, for tests that want one on a busy machine too."""
    monkeypatch.setattr(chunked, "SLICE_SECONDS", 3_600.0)
