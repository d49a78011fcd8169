import pytest

from rockgate.protocol.kafka.schema.reading import (
    OutOfRoom,
    keep,
    read_many,
    skip_tags,
    weigh_many,
    weigh_text,
    wider,
)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 3000])
def test_many_values_are_read_alike_however_they_are_counted(count: int) -> None:
    data = b"\xff" + b"".join(value.to_bytes(4) for value in range(count))
    expected = list(range(count))
    assert read_many("i", data, 1, count) == expected
    assert weigh_many("i", memoryview(data), 1, count, 1 << 20)[0] == expected


def test_ids_are_read_in_rows_too() -> None:
    data = bytes(range(32))
    assert read_many("16s", data, 0, 2) == [data[:16], data[16:]]
    assert weigh_many("16s", data, 0, 2, 1000) == ([data[:16], data[16:]], 1000 - 2 * 49)


def test_reading_many_stops_soon_after_the_room_is_used_up() -> None:
    data = b"".join((1000 * value).to_bytes(4) for value in range(1, 5001))
    with pytest.raises(OutOfRoom):
        weigh_many("i", data, 0, 5000, 1000)


def test_small_integers_cost_nothing_and_others_once_while_they_are_remembered() -> None:
    assert keep(256, 100) == (256, 100)
    assert keep(-5, 100) == (-5, 100)
    first, room = keep(10**6 + 7, 100)
    assert room in (72, 100)
    same, room = keep(10**6 + 7, 100)
    assert room == 100
    assert same is first


def test_text_is_weighed_by_its_width() -> None:
    assert weigh_text("", 1000) == 1000
    assert weigh_text("abc", 1000) == 1000 - 49 - 3
    assert wider("é" * 10, 20, 1000) == 1000 - (73 + 10 - 20 - 49)
    with pytest.raises(OutOfRoom):
        wider("a" * 1000 + "\U0001f600", 1004, 100)


def test_unknown_tagged_fields_are_stepped_over() -> None:
    data = b"\x05\x02ab\xc8\x01\x00rest"
    assert skip_tags(data, 0, len(data), 2) == 7
