"""The files of a secured server: certificates, settings, and what its clients need.

Each is written aside and renamed, and can be read by its owner only, unless it is public. What is
there is never replaced without being asked to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

AUTHORITY: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca.key"
CERTIFICATE: Final = "server.pem"
KEY: Final = "server.key"
SETTINGS: Final = "rockgate.toml"
CLIENT: Final = "client.properties"
LIBRDKAFKA: Final = "librdkafka.conf"
ROCKETMQ_TLS: Final = "rocketmq-tls.properties"
ROCKETMQ_TOOLS: Final = "tools.yml"
PUBLIC: Final = frozenset({AUTHORITY, CERTIFICATE, ROCKETMQ_TLS})
"""What other users of the machine may read, if they may enter the folder."""
FILE_BYTES_MAX: Final = 1 << 20


class FolderError(Exception):
    """A file that cannot be read or written; the text is a sentence."""


class Folder:
    """The folder, which only its owner can enter if it is made here."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.written: list[str] = []
        self.found: list[str] = []
        """What was there before, and stays."""

    def make(self) -> None:
        """Create the folder if it is missing."""
        with self._errors(self.path):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def file(self, name: str) -> Path:
        """Where a file is."""
        return self.path / name

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if it does not exist."""
        try:
            with self.file(name).open("rb") as file:
                return file.read(FILE_BYTES_MAX)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(self.file(name), error) from None

    def write(self, files: Mapping[str, bytes | str], *, replaces: bool) -> None:
        """Write files; those that exist stay as they are, unless `replaces`."""
        for name, content in files.items():
            if not replaces and self.file(name).exists():
                self.found.append(name)
                continue
            self._write(name, content if isinstance(content, bytes) else content.encode())
            self.written.append(name)

    def _write(self, name: str, content: bytes) -> None:
        path, aside = self.file(name), self.file(f".{name}.new")
        with self._errors(path):
            aside.unlink(missing_ok=True)
            mode = 0o644 if name in PUBLIC else 0o600
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(aside, flags, mode), "wb") as file:
                # Whatever the umask says: a server of another user may have to read it.
                os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            aside.rename(path)

    @contextmanager
    def _errors(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _failed(path, error) from None


def _failed(path: Path, error: OSError) -> FolderError:
    return FolderError(
        f"Cannot use {path}: {error.strerror or error}. Choose another folder with --dir."
    )
