import struct

import pytest

from rockgate.protocol.kafka.schema.writing import Run, Shapes, pack_array


def test_a_run_ends_with_a_varint_of_one_byte_or_of_more() -> None:
    run = Run(["i", "U"])
    assert run.pack(7, 127) == b"\0\0\0\x07\x7f"
    assert run.pack_long(7, 300) == b"\0\0\0\x07\xac\x02"


def test_a_shape_is_made_once_for_the_same_counts() -> None:
    shapes = Shapes(["h", ("U", "i"), "B"])
    pack = shapes.make((2,))
    assert pack(1, 3, 10, 11, 0) == b"\0\x01\x03\0\0\0\x0a\0\0\0\x0b\0"
    assert shapes.get((2,)) is pack


def test_shapes_of_many_elements_are_not_kept() -> None:
    shapes = Shapes([("i", "q")])
    assert shapes.make((100,))(100, *range(100)) == struct.pack(">i100q", 100, *range(100))
    assert shapes.get((100,)) is None


def test_shapes_that_are_kept_have_a_bound() -> None:
    shapes = Shapes([("U", "b"), ("U", "b")])
    for first in range(30):
        for second in range(30):
            shapes.make((first, second))
    assert len(shapes._known) <= 256


def test_a_count_that_takes_two_bytes_is_written_in_pieces() -> None:
    shapes = Shapes(["h", ("U", "b"), ("i", "b"), "B"])
    written = shapes.make((127, 1))(5, 128, *[1] * 127, 1, 9, 0)
    assert written == b"\0\x05\x80\x01" + b"\x01" * 127 + b"\0\0\0\x01\x09\0"


@pytest.mark.parametrize(
    ("head", "values", "data"),
    [
        ("U", None, b"\0"),
        ("i", None, b"\xff\xff\xff\xff"),
        ("U", [], b"\x01"),
        ("U", [1, 2], b"\x03\0\x01\0\x02"),
        ("i", [1], b"\0\0\0\x01\0\x01"),
    ],
)
def test_an_array_that_may_be_null_is_written(
    head: str, values: list[int] | None, data: bytes
) -> None:
    assert pack_array(head, "h", values) == data
