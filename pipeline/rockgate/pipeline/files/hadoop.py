"""Files by Hadoop's file systems, in the JVM of a driver: as Spark's own files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopFiles:
    """The files below one root. Paths are relative to it."""

    calls_max = 1

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        given = jvm.org.apache.hadoop.fs.Path(root)
        self._system = given.getFileSystem(configuration)
        if self._system.getUri().getScheme() == "file" and "://" not in root:
            # The JVM has its own current folder, which stays where it was started.
            given = jvm.org.apache.hadoop.fs.Path(os.path.abspath(root.removeprefix("file:")))
        self._root = self._system.makeQualified(given)
        self._context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._root.toUri(), configuration
        )
        kinds = getattr(jvm.org.apache.hadoop.fs, "Options$Rename")
        self._overwrite = spark.sparkContext._gateway.new_array(kinds, 1)
        self._overwrite[0] = kinds.OVERWRITE

    def uri(self, path: str) -> str:
        """A path as Spark takes it."""
        return str(self._at(path).toString())

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        return bool(self._system.exists(self._at(path)))

    def below(self, path: str) -> list[tuple[str, int]]:
        """Every file below a path and its size; nothing if the path does not exist."""
        if not self.exists(path):
            return []
        found, root = [], str(self._root.toString()).rstrip("/") + "/"
        walk = self._system.listFiles(self._at(path), True)
        while walk.hasNext():
            status = walk.next()
            name = str(status.getPath().toString())
            found.append((name.removeprefix(root), int(status.getLen())))
        return found

    def folders(self, path: str) -> list[str]:
        """The names of the folders in a folder."""
        if not self.exists(path):
            return []
        statuses = self._system.listStatus(self._at(path))
        return [str(each.getPath().getName()) for each in statuses if each.isDirectory()]

    def rename(self, moves: Iterable[tuple[str, str]]) -> None:
        """Move files into place, replacing existing ones."""
        for source, target in moves:
            to = self._at(target)
            self._system.mkdirs(to.getParent())
            self._context.rename(self._at(source), to, self._overwrite)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files, or folders with all in them; missing ones are skipped."""
        for path in paths:
            self._system.delete(self._at(path), True)

    def read_text(self, path: str) -> str:
        """Read a small text file."""
        stream = self._system.open(self._at(path))
        try:
            return bytes(stream.readAllBytes()).decode("utf-8")
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Write a small text whole or not at all."""
        aside = f"{path}.new"
        stream = self._system.create(self._at(aside), True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()
        self.rename([(aside, path)])

    def _at(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path) if path else self._root
