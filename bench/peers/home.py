"""A peer's own directory: the caller's, which is kept, or one made for a single run."""

import shutil
import tempfile
from pathlib import Path


class Home:
    """Where a peer's configuration, data and logs lie."""

    def __init__(self, peer: str, directory: Path | None) -> None:
        self._is_ours = directory is None
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix=f"peer-{peer}-"))
        self.path = directory.resolve()

    def leave(self, *, failed: bool) -> None:
        """Remove a directory made here; one whose run failed stays, for its logs."""
        if self._is_ours and not failed:
            shutil.rmtree(self.path, ignore_errors=True)
