import asyncio
import json

import pytest

from rockgate.gateway.remoting.server import long_answers
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import joined, keyed


async def test_rows_have_commas_between_them() -> None:
    assert await joined(b"[", [], b"]", instead="") == b"[]"
    assert await joined(b"[", [b"1"], b"]", instead="") == b"[1]"
    body = await joined(b"{", [keyed("a", 1), keyed('b"', [2])], b"}", instead="")
    assert json.loads(body) == {"a": 1, 'b"': [2]}


async def test_others_have_their_turn_between_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_answers, "TURN_SECONDS", 0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    await joined(b"[", (b"%d" % number for number in range(50)), b"]", instead="")
    task.cancel()
    assert turns >= 49


async def test_too_large_an_answer_says_what_to_ask_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_answers, "BODY_BYTES_MAX", 100)
    with pytest.raises(Refused, match="exceed 100 bytes; request pages"):
        await joined(b"[", (b"x" * 30 for _ in range(4)), b"]", instead="request pages")
