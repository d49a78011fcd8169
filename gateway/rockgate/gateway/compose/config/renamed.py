"""Settings that were renamed: the old names work for one version, with a warning."""

from collections.abc import Mapping
from logging import Logger

RENAMED: Mapping[str, str] = {
    "batches.opening_bytes_max": "batches.decoding_bytes_max",
    "remoting.mapped_bytes_max": "remoting.batch_cache_bytes_max",
}
"""The name now, by the name in 0.1."""


def warn_of_renamed(deprecated: Mapping[str, str], log: Logger) -> None:
    """Log a warning for each setting that was given under its old name; `deprecated` says where."""
    for name, origin in deprecated.items():
        log.warning("%s (%s) is deprecated; use %s", name, origin, RENAMED[name])
