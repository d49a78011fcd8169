import pytest
from hypothesis import given
from hypothesis import strategies as st

from rockgate.gateway.http.head import (
    HEAD_BYTES_MAX,
    HEADERS_MAX,
    LINE_BYTES_MAX,
    HeadReader,
    HeadRefused,
    Request,
)


def read(data: bytes) -> Request | None:
    return HeadReader().feed(data)


@pytest.mark.parametrize(
    ("head", "path", "is_head"),
    [
        (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "/health", False),
        (b"HEAD /ready HTTP/1.0\r\n\r\n", "/ready", True),
        (b"GET /ready?verbose=1 HTTP/1.1\r\nAccept: */*\r\nX-A:\r\n\r\n", "/ready", False),
        (b"GET /%ff HTTP/1.1\r\n\r\n", "/%ff", False),
        (b"GET /health HTTP/1.1\r\n\r\nGET /again HTTP/1.1\r\n\r\n", "/health", False),
    ],
)
def test_a_head_is_a_method_and_a_path(head: bytes, path: str, is_head: bool) -> None:
    assert read(head) == Request(path, is_head)


def test_a_head_may_come_one_byte_at_a_time() -> None:
    head = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    reader = HeadReader()
    assert [reader.feed(bytes([byte])) for byte in head][:-1] == [None] * (len(head) - 1)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /health HTTP/1.1\r\n\r\n", 405),
        (b"BREW /health HTTP/1.1\r\n\r\n", 405),
        (b"get /health HTTP/1.1\r\n\r\n", 405),
        (b"GET /health HTTP/2.0\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\n", 505),
        (b"GET /health\r\n\r\n", 400),
        (b"GET  /health HTTP/1.1\r\n\r\n", 400),
        (b"GET http://x/health HTTP/1.1\r\n\r\n", 400),
        (b"GET * HTTP/1.1\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nSpace : x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nNul: \x00\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nBare: a\nb\r\n\r\n", 400),
        (b"GET /" + b"a" * LINE_BYTES_MAX + b" HTTP/1.1\r\n\r\n", 414),
        (b"A" * (LINE_BYTES_MAX + 1), 414),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * (HEADERS_MAX + 1) + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * HEAD_BYTES_MAX, 431),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 10_000_000, 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
)
def test_what_is_not_a_plain_get_is_refused_with_a_status(head: bytes, status: int) -> None:
    with pytest.raises(HeadRefused) as caught:
        read(head)
    assert caught.value.status == status


def test_a_reader_never_holds_more_than_its_bound() -> None:
    reader = HeadReader()
    with pytest.raises(HeadRefused):
        reader.feed(b"GET / HTTP/1.1\r\nA: " + b"b" * 10_000_000)
    assert len(reader._received) == HEAD_BYTES_MAX + 1


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_become_a_request_a_refusal_or_a_wish_for_more(data: bytes, ends: bool) -> None:
    try:
        read(data + b"\r\n\r\n" if ends else data)
    except HeadRefused as refused:
        assert refused.status in {400, 405, 414, 431, 505}
