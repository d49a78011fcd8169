"""Files by a task of the cluster, for a client of Spark Connect.

Connect has no call for files. A function that is sent along does what is asked in one task, on a
machine where the paths mean what they mean to Spark. It is pickled whole: nothing of ours has to
be installed there. Local paths need Python's own library only, others need pyarrow.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rockgate.pipeline.errors import JobFailed
from rockgate.pipeline.spark import shipped_code
from rockgate.pipeline.spark.failures import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "file:"


class TaskFiles:
    """The files below one root. Paths are relative to it."""

    calls_max = 1000

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = qualified(root)

    def uri(self, path: str) -> str:
        """A path as Spark takes it."""
        return f"{self._root}/{path}" if path else self._root

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        return bool(self._ask("exists", self.uri(path)))

    def below(self, path: str) -> list[tuple[str, int]]:
        """Every file below a path and its size; nothing if the path does not exist."""
        prefix = f"{path}/" if path else ""
        return [(prefix + name, size) for name, size in self._ask("below", self.uri(path))]

    def folders(self, path: str) -> list[str]:
        """The names of the folders in a folder."""
        return list(self._ask("folders", self.uri(path)))

    def rename(self, moves: Iterable[tuple[str, str]]) -> None:
        """Move files into place, replacing existing ones."""
        self._ask("rename", *([self.uri(source), self.uri(to)] for source, to in moves))

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files, or folders with all in them; missing ones are skipped."""
        self._ask("delete", *(self.uri(path) for path in paths))

    def read_text(self, path: str) -> str:
        """Read a small text file."""
        return str(self._ask("read", self.uri(path)))

    def write_text(self, path: str, text: str) -> None:
        """Write a small text whole or not at all."""
        self._ask("write", self.uri(path), text)

    def _ask(self, what: str, *about: Any) -> Any:
        from pyspark.sql import functions as F

        doing = F.udf(
            shipped_code.whole(shipped_code.done), "string", useArrow=False
        ).asNondeterministic()
        one = self._spark.range(0, 1, 1, 1)
        with spark_errors():
            [row] = one.select(doing(F.lit(json.dumps([what, *about]))).alias("answer")).collect()
        answer = json.loads(row.answer)
        if "failure" in answer:
            raise JobFailed(f"{what} {about[0]}: {answer['failure']}")
        return answer["result"]


def qualified(root: str) -> str:
    """A root with its scheme, written as Hadoop does; a path without one is a local one."""
    if "://" in root and not root.startswith("file://"):
        return root.rstrip("/")
    path = root.removeprefix("file://").removeprefix(LOCAL)
    return LOCAL + os.path.abspath(path)
