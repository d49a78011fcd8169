"""Decoded messages as plain JSON: the meaning of the bytes in a golden file."""

from typing import Any


def plain(value: Any) -> Any:
    """Fields by name, bytes as hex; record batches by their size, since the frame has them."""
    declared = getattr(type(value), "__declaration__", None)
    if declared is not None:
        return {spec.name: plain(getattr(value, spec.name)) for spec in declared.fields}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, memoryview):
        return {"size": len(value)}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value
