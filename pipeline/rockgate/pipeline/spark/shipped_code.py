"""Code shipped to a Connect server, to run in its Python: nothing of ours is installed there.

So this module is self-contained: it is pickled as a whole, needs only the standard library (and
pyarrow for files that are not local), and imports nothing of the package.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

POLL_SECONDS = 0.05
CLIENT_SECONDS_MAX = 20.0
"""How long a client may send no heartbeat before its step is abandoned."""


def whole(function: Any) -> Any:
    """A function to be pickled with all that it needs of its module, instead of by its name."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


# A stream's batches


def offering(name: str) -> Callable[[Any, int], None]:
    """What foreachBatch calls: has the client make the step, and waits for the outcome.

    Client and server share the session, so its settings are where they meet: `NAME.offered` is the
    batch that waits, under the view NAME_BATCH; `NAME.answer` is what the client says of it;
    `NAME.alive` changes while the client lives. The view is of the batch itself, so the client
    sees exactly what it is about.
    """

    def offer(frame: Any, number: int) -> None:
        session = frame.sparkSession
        view = f"{name}_{number}"
        frame.createOrReplaceTempView(view)
        session.conf.set(f"{name}.offered", str(number))
        sign, seen = "", time.monotonic()
        while True:
            answer = session.conf.get(f"{name}.answer", "")
            if answer == f"{number} done":
                session.catalog.dropTempView(view)
                return
            if answer.startswith((f"{number} ", "stop")):
                raise InterruptedError(f"the client did not complete this step: {answer}")
            alive = session.conf.get(f"{name}.alive", "")
            if alive != sign:
                sign, seen = alive, time.monotonic()
            elif time.monotonic() - seen > CLIENT_SECONDS_MAX:
                # What it started must not keep running alongside the run that repeats the batch.
                session.interruptAll()
                raise TimeoutError(
                    "the client of this job is gone; its next run processes this batch"
                )
            time.sleep(POLL_SECONDS)

    return offer


# Files


def done(asked: str) -> str:
    """Execute a request about files, and report the outcome."""
    what, *about = json.loads(asked)
    first = about[0][0] if isinstance(about[0], list) else about[0]
    try:
        way: Any = Local() if first.startswith("file:") else Elsewhere(first)
        return json.dumps({"result": getattr(way, what)(*about)})
    except Exception as error:  # noqa: BLE001 - it travels back as text, whatever it is
        return json.dumps({"failure": f"{type(error).__name__}: {error}"})


class Local:
    """Files of a disk that the task sees, a shared one on a cluster.

    Hadoop keeps a checksum beside each file it writes, `.NAME.crc`, and believes it: it moves and
    goes with its file.
    """

    def exists(self, uri: str) -> bool:
        """Whether the path exists."""
        return os.path.exists(self._path(uri))

    def below(self, uri: str) -> list[tuple[str, int]]:
        """Every file below a folder, by its path from there."""
        root, found = self._path(uri), []
        for folder, _, names in os.walk(root):
            for name in names:
                if not (name.startswith(".") and name.endswith(".crc")):
                    path = os.path.join(folder, name)
                    found.append((os.path.relpath(path, root), os.path.getsize(path)))
        return found

    def folders(self, uri: str) -> list[str]:
        """The names of the folders in a folder."""
        path = self._path(uri)
        return [each.name for each in os.scandir(path) if each.is_dir()] if self.exists(uri) else []

    def rename(self, *moves: tuple[str, str]) -> None:
        """Move each; one that a task before this one has moved already is passed over."""
        for source, target in moves:
            old, new = self._path(source), self._path(target)
            if not os.path.exists(old) and os.path.exists(new):
                continue
            os.makedirs(os.path.dirname(new), exist_ok=True)
            self._drop(self._sum(new))
            os.replace(old, new)
            if os.path.exists(self._sum(old)):
                os.replace(self._sum(old), self._sum(new))

    def delete(self, *uris: str) -> None:
        """Remove each, file or folder."""
        for uri in uris:
            path = self._path(uri)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                self._drop(path)
                self._drop(self._sum(path))

    def read(self, uri: str) -> str:
        """Read a small text file."""
        with open(self._path(uri), encoding="utf-8") as file:
            return file.read()

    def write(self, uri: str, text: str) -> None:
        """Write a small text file atomically."""
        path = self._path(uri)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._drop(self._sum(path))
        os.replace(path + ".new", path)

    def _path(self, uri: str) -> str:
        return uri[len("file:") :]

    def _sum(self, path: str) -> str:
        return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.crc")

    def _drop(self, path: str) -> None:
        if os.path.exists(path):
            os.remove(path)


class Elsewhere:
    """Files of an object store or of HDFS, by pyarrow."""

    def __init__(self, uri: str) -> None:
        try:
            from pyarrow import fs
        except ImportError:
            raise RuntimeError(
                "the Python of Spark's workers needs pyarrow for remote files"
            ) from None
        self._fs = fs
        # Hadoop's names for what is called s3 elsewhere.
        self._system, _ = fs.FileSystem.from_uri(self._plain(uri))

    def exists(self, uri: str) -> bool:
        """Whether the path exists."""
        return bool(self._info(uri).type != self._fs.FileType.NotFound)

    def below(self, uri: str) -> list[tuple[str, int]]:
        """Every file below a folder, by its path from there."""
        root = self._path(uri)
        chosen = self._fs.FileSelector(root, allow_not_found=True, recursive=True)
        return [
            (each.path[len(root) :].lstrip("/"), each.size)
            for each in self._system.get_file_info(chosen)
            if each.type == self._fs.FileType.File
        ]

    def folders(self, uri: str) -> list[str]:
        """The names of the folders in a folder."""
        chosen = self._fs.FileSelector(self._path(uri), allow_not_found=True)
        found = self._system.get_file_info(chosen)
        return [each.base_name for each in found if each.type == self._fs.FileType.Directory]

    def rename(self, *moves: tuple[str, str]) -> None:
        """Move each; one that a task before this one has moved already is passed over."""
        for source, target in moves:
            if not self.exists(source) and self.exists(target):
                continue
            self._system.create_dir(os.path.dirname(self._path(target)), recursive=True)
            self._system.move(self._path(source), self._path(target))

    def delete(self, *uris: str) -> None:
        """Remove each, file or folder."""
        for uri in uris:
            kind = self._info(uri).type
            if kind == self._fs.FileType.Directory:
                self._system.delete_dir(self._path(uri))
            elif kind != self._fs.FileType.NotFound:
                self._system.delete_file(self._path(uri))

    def read(self, uri: str) -> str:
        """Read a small text file."""
        with self._system.open_input_stream(self._path(uri)) as file:
            return bytes(file.read()).decode("utf-8")

    def write(self, uri: str, text: str) -> None:
        """Write a small text file atomically."""
        self._system.create_dir(os.path.dirname(self._path(uri)), recursive=True)
        with self._system.open_output_stream(self._path(uri) + ".new") as file:
            file.write(text.encode("utf-8"))
        self._system.move(self._path(uri) + ".new", self._path(uri))

    def _info(self, uri: str) -> Any:
        return self._system.get_file_info([self._path(uri)])[0]

    def _path(self, uri: str) -> str:
        return str(self._fs.FileSystem.from_uri(self._plain(uri))[1])

    def _plain(self, uri: str) -> str:
        scheme, rest = uri.split("://", 1)
        return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}"
