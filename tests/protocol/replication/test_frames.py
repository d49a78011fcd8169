"""Frames of replication: what is packed is read, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.budget import budget
from tests.seeds import seeded

from rockgate.protocol.frames import FrameReader
from rockgate.protocol.replication import frames
from rockgate.protocol.replication.frames import (
    EPOCHS_MAX,
    FRAME_BYTES_MAX,
    KINDS,
    Data,
    EpochMark,
    FilePart,
    Frame,
    Greeting,
    Hello,
    MalformedReplication,
    Refuse,
    Report,
    Start,
    decode,
    encode,
    head_of,
)
from rockgate.protocol.replication.proof import PRIMARY, REPLICA, is_proven, proof

PAGE = (Path(__file__).parents[3] / "docs" / "internals" / "replication.md").read_text(
    encoding="utf-8"
)

NUMBER = st.integers(0, (1 << 32) - 1)
POSITION = st.integers(0, (1 << 63) - 1)
TEXT = st.text(max_size=200)


def of_size(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


@st.composite
def hellos(draw: st.DrawFn) -> Hello:
    places = sorted(draw(st.sets(st.integers(0, 1 << 62), max_size=5)))
    epochs = tuple(
        EpochMark(draw(NUMBER), place, draw(of_size(16)), draw(of_size(8))) for place in places
    )
    least = places[-1] + 1 if places else 0
    start, end = draw(POSITION), draw(POSITION)
    end = min(max(end, least, start), (1 << 63) - 1)
    fixed = draw(TEXT), draw(of_size(16)), draw(NUMBER), draw(POSITION), draw(NUMBER)
    return Hello(
        *fixed, draw(st.booleans()), start, end, draw(of_size(16)), draw(of_size(32)), epochs
    )


WHOLE = (
    hellos()
    | st.builds(Start, NUMBER, POSITION, POSITION, NUMBER, of_size(32), TEXT)
    | st.builds(Refuse, st.integers(0, 65535), TEXT, TEXT)
    | st.tuples(NUMBER, POSITION, POSITION, POSITION).map(
        lambda each: Report(each[0], max(each[1], each[3]), each[2], min(each[1], each[3]))
    )
    | st.builds(Greeting, of_size(16))
)
SLICED = st.builds(Data, NUMBER, POSITION, POSITION, st.binary(max_size=50).map(memoryview)) | (
    st.binary(max_size=50).flatmap(
        lambda data: st.builds(
            FilePart,
            TEXT,
            st.integers(len(data) + 1000, 1 << 62),
            st.integers(0, 1000),
            st.just(memoryview(data)),
        )
    )
)


def packed(frame: Frame) -> bytes:
    if isinstance(frame, (Data, FilePart)):
        return head_of(frame) + frame.data
    return encode(frame)


def read(stream: bytes) -> Frame:
    [body] = FrameReader(FRAME_BYTES_MAX).feed(stream)
    return decode(body, of_replica=body[0] in frames.FROM_REPLICA)


@given(WHOLE | SLICED)
def test_what_is_packed_is_read(frame: Frame) -> None:
    assert read(packed(frame)) == frame


HELLO = Hello(
    "cluster",
    bytes(16),
    2,
    1 << 20,
    7,
    True,
    0,
    900,
    bytes(16),
    bytes(32),
    (EpochMark(6, 0, bytes(16), bytes(8)), EpochMark(7, 400, bytes(16), bytes(8))),
)
EXAMPLES: list[Frame] = [
    HELLO,
    Start(7, 900, 800, 1, bytes(32), "cluster"),
    Refuse(1, "Not the primary.", "192.0.2.1:10912"),
    Data(7, 900, 850, memoryview(b"entries")),
    Report(7, 900, 850, 860),
    FilePart("00000000000000000000-0000000001", 100, 50, memoryview(b"part")),
    Greeting(bytes(16)),
]


@pytest.mark.parametrize("frame", EXAMPLES, ids=lambda frame: type(frame).__name__)
def test_a_frame_that_is_cut_or_has_more_is_refused(frame: Frame) -> None:
    body = packed(frame)[4:]
    of_replica = body[0] in frames.FROM_REPLICA
    sliced = len(frame.data) if isinstance(frame, (Data, FilePart)) else 0
    for size in range(len(body) - sliced):
        with pytest.raises(MalformedReplication):
            decode(memoryview(body[:size]), of_replica=of_replica)
    if not sliced:
        with pytest.raises(MalformedReplication):
            decode(memoryview(body + b"x"), of_replica=of_replica)


@pytest.mark.parametrize("frame", EXAMPLES, ids=lambda frame: type(frame).__name__)
def test_a_frame_of_the_wrong_side_is_refused(frame: Frame) -> None:
    body = memoryview(packed(frame))[4:]
    with pytest.raises(MalformedReplication, match="does not take"):
        decode(body, of_replica=body[0] not in frames.FROM_REPLICA)


@pytest.mark.parametrize(
    "wrong",
    [
        HELLO._replace(epochs=HELLO.epochs[::-1]),
        HELLO._replace(epochs=HELLO.epochs[:1] * 2),
        HELLO._replace(start=901),
        HELLO._replace(end=400),
        HELLO._replace(end=1 << 63),
        HELLO._replace(is_whole=2),  # type: ignore[arg-type]  # a byte that is neither
        Report(7, 10, 10, 11),
        Start(7, 1 << 63, 0, 1, bytes(32), "cluster"),
        FilePart("name", 10, 8, memoryview(b"long")),
        Data(7, 0, 0, memoryview(bytes(frames.DATA_BYTES_MAX + 1))),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_values_that_cannot_be_are_refused(wrong: Frame) -> None:
    body = memoryview(packed(wrong))[4:]
    with pytest.raises(MalformedReplication):
        decode(body, of_replica=body[0] in frames.FROM_REPLICA)


def test_another_protocol_and_another_version_are_refused() -> None:
    body = bytearray(encode(HELLO)[4:])
    body[1:5] = b"HTTP"
    with pytest.raises(MalformedReplication, match="magic"):
        decode(memoryview(body), of_replica=True)
    body[1:7] = b"RGHA\0\3"
    with pytest.raises(MalformedReplication, match="version 3"):
        decode(memoryview(body), of_replica=True)


def test_the_longest_hello_fits_a_frame_and_a_longer_one_is_refused() -> None:
    marks = tuple(EpochMark(n, n, bytes(16), bytes(8)) for n in range(EPOCHS_MAX))
    longest = HELLO._replace(cluster="x" * 1024, end=EPOCHS_MAX, epochs=marks)
    assert read(encode(longest)) == longest
    one_more = (*marks, EpochMark(1, EPOCHS_MAX, bytes(16), bytes(8)))
    longer = longest._replace(end=EPOCHS_MAX + 1, epochs=one_more)
    with pytest.raises(MalformedReplication, match="epochs"):
        decode(memoryview(encode(longer))[4:], of_replica=True)


def test_random_bytes_end_in_a_frame_or_in_its_error() -> None:
    random: Random = seeded()
    bodies = [bytearray(packed(frame)[4:]) for frame in EXAMPLES]
    for _ in range(budget("fuzz_rounds")):
        body = bytearray(random.choice(bodies))
        for _ in range(random.randrange(4)):
            body[random.randrange(len(body))] = random.randrange(256)
        del body[random.randrange(len(body) + 1) :]
        try:
            decode(memoryview(body), of_replica=random.random() < 0.5)
        except MalformedReplication:
            continue


def test_a_proof_needs_the_secret_both_nonces_and_the_side() -> None:
    ours, theirs = b"p" * 16, b"r" * 16
    good = proof(b"secret", REPLICA, ours, theirs)
    assert is_proven(good, proof(b"secret", REPLICA, ours, theirs))
    others = [
        proof(b"other", REPLICA, ours, theirs),
        proof(b"secret", PRIMARY, ours, theirs),
        proof(b"secret", REPLICA, theirs, theirs),
        proof(b"secret", REPLICA, ours, ours),
        proof(b"", REPLICA, ours, theirs),
    ]
    assert not any(is_proven(good, other) for other in others)


# The page


def rows(pattern: str) -> dict[str, str]:
    return {match[2]: match[1] for match in re.finditer(pattern, PAGE, re.MULTILINE)}


def test_the_page_has_the_kinds() -> None:
    table = rows(r"^\| (\d+) \| `([A-Z]+)` \| (?:replica|primary) \|")
    assert table == {name: str(kind) for kind, name in KINDS.items()}
    sides = dict(re.findall(r"^\| (\d+) \| `[A-Z]+` \| (replica|primary) \|", PAGE, re.MULTILINE))
    assert {int(kind) for kind, side in sides.items() if side == "replica"} == frames.FROM_REPLICA


def test_the_page_has_the_reasons_and_the_limits() -> None:
    for name, number in rows(r"^\| (\d+) \| `([A-Z_]+)` \| [^|]+ \|$").items():
        assert getattr(frames, name) == int(number)
    limits = re.findall(r"^\| [^|]+ \| (\d+) \|$", PAGE, re.MULTILINE)
    wanted = (frames.DATA_BYTES_MAX, EPOCHS_MAX, frames.TEXT_BYTES_MAX, FRAME_BYTES_MAX)
    assert list(map(int, limits)) == list(wanted)


def test_the_page_has_the_sizes_of_the_fields() -> None:
    sizes = {
        "GREETING": len(encode(EXAMPLES[6])) - 4,  # type: ignore[arg-type]
        "REPORT": len(encode(EXAMPLES[4])),  # type: ignore[arg-type]
    }
    for name, size in sizes.items():
        [body] = re.findall(rf"^\| \d+ \| `{name}` \| \w+ \| (.+) \|$", PAGE, re.MULTILINE)
        assert 5 + sum(map(int, re.findall(r" (\d+)(?:,|$)", body))) == size
