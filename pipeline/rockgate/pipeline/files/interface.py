"""Files of a job, wherever Spark can reach them: a local folder, HDFS, an object store.

A driver uses Hadoop's file systems, as Spark's own files do (hadoop.py). A client of Spark Connect
has none, and lets a task of the cluster do it, where the paths mean what they mean to Spark
(task.py). A text is written aside and renamed, so a reader finds the old one or the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from rockgate.pipeline.spark.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file below the root: its path from there, and how many bytes it has."""

    path: str
    size: int


class _Way(Protocol):
    """How the files below one root are reached."""

    calls_max: int
    """How many renames or deletions go into one call."""

    def uri(self, path: str) -> str: ...
    def exists(self, path: str) -> bool: ...
    def below(self, path: str) -> list[tuple[str, int]]: ...
    def folders(self, path: str) -> list[str]: ...
    def rename(self, moves: Iterable[tuple[str, str]]) -> None: ...
    def delete(self, paths: Iterable[str]) -> None: ...
    def read_text(self, path: str) -> str: ...
    def write_text(self, path: str, text: str) -> None: ...


T = TypeVar("T")


def _chunks(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), size):
        yield things[start : start + size]


def _way(spark: SparkSession, root: str) -> _Way:
    if is_remote(spark):
        from rockgate.pipeline.files.task import TaskFiles

        return TaskFiles(spark, root)
    from rockgate.pipeline.files.hadoop import HadoopFiles

    return HadoopFiles(spark, root)


class Files:
    """The files below one root. Paths are relative to it."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._way = _way(spark, root)

    def uri(self, path: str = "") -> str:
        """A path as Spark takes it."""
        return self._way.uri(path)

    def exists(self, path: str = "") -> bool:
        """Whether the path exists."""
        return self._way.exists(path)

    def below(self, path: str = "") -> list[File]:
        """Every file below a path, sorted; nothing if the path does not exist."""
        return [File(path=name, size=size) for name, size in sorted(self._way.below(path))]

    def folders(self, path: str = "") -> list[str]:
        """The names of the folders in a folder."""
        return sorted(self._way.folders(path))

    def rename(self, source: str, target: str) -> None:
        """Move a file into place, replacing an existing one."""
        self._way.rename([(source, target)])

    def rename_all(self, moves: Sequence[tuple[str, str]]) -> None:
        """Put each file in its place, in order; where calls are expensive, by one call."""
        for chunk in _chunks(moves, self._way.calls_max):
            if len(chunk) > 1:
                self._way.rename(chunk)
            else:
                self.rename(*chunk[0])

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with all in it; nothing happens if it does not exist."""
        self._way.delete([path])

    def delete_all(self, paths: Sequence[str]) -> None:
        """Remove each, in order; where calls are expensive, by one call."""
        for chunk in _chunks(paths, self._way.calls_max):
            if len(chunk) > 1:
                self._way.delete(chunk)
            else:
                self.delete(chunk[0])

    def read_text(self, path: str) -> str:
        """Read a small text file."""
        return self._way.read_text(path)

    def write_text(self, path: str, text: str) -> None:
        """Write a small text whole or not at all."""
        self._way.write_text(path, text)
