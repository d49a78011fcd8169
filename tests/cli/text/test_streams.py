import asyncio
import os
import threading

import pytest
from tests.waiting import until

from rockgate.cli.text import streams


def pipe(data: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading


async def all_lines(data: bytes) -> list[bytes]:
    reading = pipe(data)
    try:
        return [line async for some in streams.lines(reading) for line in some]
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\n\n", [b"a", b""]),
        (b"\xff\x00\n", [b"\xff\x00"]),
    ],
)
async def test_lines_come_without_their_ends(data: bytes, expected: list[bytes]) -> None:
    assert await all_lines(data) == expected


async def test_a_line_that_someone_types_comes_at_once() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"first\nsec")
    lines = streams.lines(reading)
    assert await anext(lines) == [b"first"]
    os.write(writing, b"ond\n")
    assert await anext(lines) == [b"second"]
    os.close(writing)
    assert [some async for some in lines] == []
    os.close(reading)


async def test_more_is_read_than_fits_in_memory_at_once() -> None:
    reading, writing = os.pipe()
    size = 0
    done = 0

    def write() -> None:
        nonlocal done
        for _ in range(64):
            os.write(writing, b"x" * 65536)
            done += 1
        os.close(writing)

    thread = threading.Thread(target=write)
    thread.start()
    async for chunk in streams.chunks(reading):
        size += len(chunk)
    thread.join()
    os.close(reading)
    assert size == 64 * 65536


async def test_output_is_out_when_write_returns() -> None:
    reading, writing = os.pipe()
    output = streams.Output(writing)
    await output.write(b"hello")
    assert os.read(reading, 100) == b"hello"
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        await output.write(b"nobody reads this")
    os.close(writing)


async def test_the_loop_continues_while_no_one_reads_the_output() -> None:
    reading, writing = os.pipe()
    output = streams.Output(writing)
    data = b"x" * (1 << 20)
    task = asyncio.ensure_future(output.write(data))
    turns = 0

    def turn() -> bool:
        nonlocal turns
        turns += 1
        return turns > 5

    await until(turn, "the loop has turned")
    assert not task.done()
    size = 0
    while size < len(data):
        size += len(os.read(reading, 1 << 16))
        await asyncio.sleep(0)
    await task
    os.close(reading)
    os.close(writing)


def test_a_meter_shows_how_fast_it_goes_a_few_times_a_second() -> None:
    now = 100.0
    shown: list[str] = []
    meter = streams.Meter("sent", is_visible=True, clock=lambda: now, show=shown.append)
    for _ in range(8):
        now += 0.125
        meter.add(250, 1024)
    assert len(shown) == 4
    assert meter.text() == "sent 2,000 records, 8.0 KiB (2,000/s, 8.0 KiB/s)"


def test_a_meter_that_no_one_watches_shows_nothing() -> None:
    shown: list[str] = []
    meter = streams.Meter("sent", is_visible=False, clock=lambda: 0.0, show=shown.append)
    meter.add(1, 1)
    meter.clear()
    assert shown == []


SIZE = 1 << 20  # more than a pipe takes, so that writing waits for a reader


async def test_what_is_out_when_a_command_is_ended_counts_as_written() -> None:
    reading, writing = os.pipe()
    output = streams.Output(writing)
    counted: list[int] = []

    async def work() -> None:
        await output.write(b"x" * SIZE)
        counted.append(SIZE)
        await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.to_thread(os.read, reading, 1)
    task.cancel()
    left = SIZE - 1
    while left:
        left -= len(await asyncio.to_thread(os.read, reading, left))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert counted == [SIZE]
    assert task.cancelling() == 1
    os.close(reading)
    os.close(writing)


async def test_ending_a_command_does_not_wait_for_someone_who_reads_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "OUT_SECONDS", 0.01)
    reading, writing = os.pipe()
    output = streams.Output(writing)
    task = asyncio.create_task(output.write(b"x" * SIZE))
    await asyncio.to_thread(os.read, reading, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    os.close(reading)
