"""Names of archived files: which of them count, and which were merged into others."""

from rockgate.pipeline.files.archive import Part, parsed, split
from rockgate.pipeline.files.interface import File


def part(first: int, last: int, partition: int = 0, date: str = "2024-10-04") -> Part:
    return Part(topic="t", date=date, partition=partition, first=first, last=last)


def test_a_name_says_what_is_in_the_file() -> None:
    one = Part(topic="a.b-c_d", date="2024-10-04", partition=12, first=0, last=10**12, size=7)
    assert parsed([File(path=one.path, size=7)]) == [one]


def test_what_is_named_otherwise_is_not_ours() -> None:
    names = ["_staging/b/topic=t/date=x/part-0.parquet", "topic=t/date=x/part-0.parquet", "readme"]
    assert parsed(File(path=name, size=1) for name in names) == []


def test_a_file_within_another_s_range_is_superseded() -> None:
    merged, inner, end = part(0, 99), part(0, 49), part(50, 99)
    behind, other = part(100, 120), part(0, 49, partition=1)
    elsewhere = part(10, 20, date="2024-10-05")
    live, superseded = split([inner, behind, merged, end, other, elsewhere])
    assert live == [merged, behind, other, elsewhere]
    assert superseded == [inner, end]


def test_a_file_is_not_superseded_by_itself_or_by_a_neighbour() -> None:
    parts = [part(0, 9), part(10, 10), part(11, 30)]
    assert split(parts) == (parts, [])
