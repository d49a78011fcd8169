"""Which small files are merged with which."""

from dataclasses import replace

from rockgate.pipeline.files.archive import Part
from rockgate.pipeline.files.compaction import Merging, runs


def parts(*sizes: int, partition: int = 0) -> list[Part]:
    blank = Part(topic="t", date="d", partition=partition, first=0, last=0)
    return [
        replace(blank, first=n * 10, last=n * 10 + 9, size=size) for n, size in enumerate(sizes)
    ]


def ranges(found: list[list[Part]]) -> list[tuple[int, int, int]]:
    return [(run[0].partition, run[0].first, run[-1].last) for run in found]


def test_enough_small_neighbours_make_a_run() -> None:
    merging = Merging(files_min=3, bytes_max=100)
    assert ranges(runs(parts(10, 10), merging)) == []
    assert ranges(runs(parts(10, 10, 10), merging)) == [(0, 0, 29)]


def test_a_large_file_ends_a_run_and_is_left_alone() -> None:
    merging = Merging(files_min=2, bytes_max=100)
    assert ranges(runs(parts(10, 10, 500, 10, 10), merging)) == [(0, 0, 19), (0, 30, 49)]


def test_a_run_does_not_grow_beyond_a_large_file() -> None:
    merging = Merging(files_min=2, bytes_max=100)
    assert ranges(runs(parts(40, 40, 40, 40), merging)) == [(0, 0, 19), (0, 20, 39)]


def test_partitions_are_never_mixed() -> None:
    merging = Merging(files_min=2, bytes_max=100)
    mixed = [*parts(10, partition=0), *parts(10, 10, partition=1)]
    assert ranges(runs(mixed, merging)) == [(1, 0, 19)]


def test_nothing_is_merged_on_request() -> None:
    assert runs(parts(1, 1, 1, 1), Merging(files_min=0)) == []
