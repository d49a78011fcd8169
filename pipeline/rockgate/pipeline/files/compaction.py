"""Merging the archive's small files into large ones, while every record stays readable.

A merge reads neighbouring files of one topic, date and partition, writes one, and renames it into
its place; from then on the old ones are superseded (see archive.py), and they are deleted. Readers
that use `archive.read` see every record once at any time. A plain reader of the folder may, between
the rename and the deletions, see a record twice, but never miss one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from rockgate.pipeline.errors import JobFailed
from rockgate.pipeline.files import archive
from rockgate.pipeline.files.archive import Part
from rockgate.pipeline.files.interface import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """When files are merged: never, if `files_min` is 0."""

    files_min: int = 8
    """How many adjacent small files are merged, at least."""
    bytes_max: int = 128 << 20
    """A file of this size is large enough; merged ones do not become much larger."""


def runs(parts: Iterable[Part], merging: Merging) -> list[list[Part]]:
    """Which parts are merged with which: neighbours of one place, enough of them, none large."""
    if merging.files_min < 2:
        return []
    found: list[list[Part]] = []
    ordered = sorted(parts, key=lambda part: (part.place, part.first))
    for _, group in groupby(ordered, key=lambda part: part.place):
        run: list[Part] = []
        for part in group:
            is_full = sum(each.size for each in run) + part.size > merging.bytes_max
            if is_full:
                found.append(run)
                run = []
            if part.size < merging.bytes_max:
                run.append(part)
        found.append(run)
    return [run for run in found if len(run) >= merging.files_min]


def merge(spark: SparkSession, files: Files, run: list[Part]) -> Part:
    """Put the records of a run into one file, and remove the files it was made from."""
    merged = replace(run[0], last=max(part.last for part in run), size=0)
    frame = archive.read(spark, files.uri(), parts=run)
    before = frame.count()
    aside = f"merge-{merged.partition}"
    [(staged, part)] = archive.stage(files, spark, frame, aside)
    after = spark.read.parquet(files.uri(staged)).count()
    if (part.place, part.first, part.last, after) != (
        merged.place,
        merged.first,
        merged.last,
        before,
    ):
        raise JobFailed(
            f"Merging {len(run)} files of {merged.path} produced {part.path} with {after:,} "
            f"records instead of {before:,}. The files were left unchanged."
        )
    files.rename(staged, part.path)
    files.delete(f"{archive.STAGING}/{aside}")
    files.delete_all([each.path for each in run if each.path != part.path])
    return part


def sweep(files: Files) -> int:
    """Delete what an interrupted merge left: parts that are superseded; how many there were."""
    folders = [name for name in files.folders() if name.startswith("topic=")]
    _, superseded = archive.split(
        archive.parsed(file for folder in folders for file in files.below(folder))
    )
    files.delete_all([part.path for part in superseded])
    return len(superseded)
