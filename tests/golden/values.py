"""Decoded messages as plain JSON: what a golden file says that its bytes mean."""

import dataclasses
from typing import Any


def plain(value: Any) -> Any:
    """Fields by name, bytes as hex; record batches by their size, for the frame has them anyway."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {spec.name: plain(getattr(value, spec.name)) for spec in dataclasses.fields(value)}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, memoryview):
        return {"size": len(value)}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value
