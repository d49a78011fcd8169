"""Where the keys come from: a file, or a server that is asked over HTTPS, in a thread."""

from __future__ import annotations

import ssl
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final, Protocol
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

SIZE_MAX: Final = 1 << 20
SECONDS_MAX: Final = 10.0
"""Time to fetch the keys."""
_PIECE_SIZE: Final = 1 << 16


class KeysUnavailable(Exception):
    """The keys could not be read. The text is a phrase."""


class KeySource(Protocol):
    """Has a JSON Web Key Set."""

    def read(self) -> bytes:
        """The set, as it is now; may take SECONDS_MAX."""

    def stamp(self) -> object:
        """What is another one when the set has changed; always the same if that is unknown."""


class KeyFile:
    """A file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> bytes:
        """The contents."""
        try:
            with self._path.open("rb") as file:
                found = file.read(SIZE_MAX + 1)
        except OSError as error:
            raise KeysUnavailable(error.strerror or str(error)) from None
        return _bounded(found)

    def stamp(self) -> object:
        """Inode, time and size; links are followed."""
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size


class KeyServer:
    """A URL."""

    def __init__(self, url: str, ca_file: Path | None) -> None:
        context = ssl.create_default_context()
        if ca_file is not None:
            try:
                context.load_verify_locations(ca_file)
            except (OSError, ssl.SSLError) as error:
                raise KeysUnavailable(f"cannot use oauth.ca_file {ca_file}: {error}") from None
        self._url = url
        self._opener = build_opener(HTTPSHandler(context=context), _SameScheme())

    def __str__(self) -> str:
        return self._url

    def read(self) -> bytes:
        """Ask the server."""
        until = monotonic() + SECONDS_MAX
        # The scheme was checked with the settings.
        request = Request(self._url, headers={"Accept": "application/json"})
        found = bytearray()
        try:
            with self._opener.open(request, timeout=SECONDS_MAX) as response:
                while len(found) <= SIZE_MAX and (piece := response.read1(_PIECE_SIZE)):
                    found += piece
                    if monotonic() >= until:
                        raise KeysUnavailable("the server takes too long")
        except (OSError, HTTPException, ValueError) as error:
            raise KeysUnavailable(str(error) or type(error).__name__) from None
        return _bounded(bytes(found))

    def stamp(self) -> object:
        """The same, always."""
        return None


class _SameScheme(HTTPRedirectHandler):
    """Follows redirections, but not from HTTPS to anything else."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        if not newurl.startswith(f"{req.type}://"):
            raise KeysUnavailable(f"redirected from {req.type} to another scheme")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _bounded(found: bytes) -> bytes:
    if len(found) > SIZE_MAX:
        raise KeysUnavailable(f"larger than {SIZE_MAX:,} bytes")
    return found
