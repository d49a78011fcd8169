"""Keys and values of the name server: one writer, on disk before the answer, whatever happens."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer

from rockgate.gateway.remoting.nameserver import kv
from rockgate.gateway.remoting.nameserver.kv import KeyValues
from rockgate.protocol.remoting.codes import ResponseCode

CONNECTIONS = 36
CHANGES_EACH = 10


def on_disk(folder: Path) -> object:
    return json.loads((folder / "kvConfig.json").read_text())["configTable"]


async def put_all(kept: KeyValues, *keys: str) -> None:
    await asyncio.gather(*(kept.put("space", key, f"value of {key}") for key in keys))


@pytest.mark.row("N-03")
def test_values_last(tmp_path: Path) -> None:
    async def change() -> None:
        kept = KeyValues(tmp_path / "new")
        await kept.put("space", "key", "value")
        await kept.put("space", "other", "gone")
        await kept.delete("space", "other")
        await kept.put("left", "key", "value")
        await kept.delete("left", "key")
        await kept.delete("nowhere", "key")

    asyncio.run(change())
    assert KeyValues(tmp_path / "new").namespace("space") == {"key": "value"}
    assert on_disk(tmp_path / "new") == {"space": {"key": "value"}}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["kvConfig.json"]


def test_changes_that_come_together_are_written_by_one_writer_in_few_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeyValues(tmp_path)
    running, writes, most = [0], [0], [0]
    save = kept._save

    def counted(spaces: dict[str, dict[str, str]]) -> None:
        running[0] += 1
        writes[0] += 1
        most[0] = max(most[0], running[0])
        save(spaces)
        running[0] -= 1

    monkeypatch.setattr(kept, "_save", counted)
    asyncio.run(put_all(kept, *map(str, range(360))))
    assert most[0] == 1
    assert writes[0] <= 3
    assert len(KeyValues(tmp_path).namespace("space") or {}) == 360


def test_a_value_is_seen_when_it_is_on_disk_and_one_that_was_not_written_was_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeyValues(tmp_path)

    async def change() -> None:
        first = kept.put("space", "first", "1")
        assert kept.get("space", "first") is None
        await first
        assert kept.get("space", "first") == "1"
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", _fail)
            with pytest.raises(OSError, match="no space"):
                await kept.put("space", "second", "2")
            with pytest.raises(OSError, match="no space"):
                await kept.delete("space", "first")
        assert kept.namespace("space") == {"first": "1"}
        await kept.put("space", "third", "3")

    asyncio.run(change())
    assert on_disk(tmp_path) == {"space": {"first": "1", "third": "3"}}
    assert [path.name for path in tmp_path.iterdir()] == ["kvConfig.json"]


def _fail(descriptor: int) -> None:
    raise OSError("no space")


def test_sizes_and_counts_have_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv, "COUNT_MAX", 3)
    monkeypatch.setattr(kv, "CHARS_MAX", 100_000)
    kept = KeyValues(tmp_path)

    async def change() -> None:
        for space, key, value in (("x" * 256, "k", "v"), ("s", "x" * 256, "v")):
            with pytest.raises(ValueError, match="namespace or key exceeds 255 characters"):
                kept.put(space, key, value)
        with pytest.raises(ValueError, match="value exceeds 65,536 characters"):
            kept.put("s", "k", "x" * 65_537)
        await kept.put("s", "large", "x" * 65_536)
        with pytest.raises(
            ValueError, match="keys and values would exceed 100,000 characters in total"
        ):
            await kept.put("s", "larger", "x" * 65_536)
        await kept.put("s", "large", "small again")
        await put_all(kept, "second", "third")
        with pytest.raises(ValueError, match="the maximum of 3 keys has been reached"):
            await put_all(kept, "fourth")
        await kept.put("space", "third", "one that is there may change")
        await kept.delete("space", "third")
        await put_all(kept, "fourth")

    asyncio.run(change())


@pytest.mark.parametrize(
    ("content", "readable"),
    [
        (b"", None),
        (b"{", None),
        (b'{"configTable":{"a":{"b":"c"}}}}', None),
        (b"\xff\xfe", None),
        (b"[]", None),
        (b'{"configTable":7}', None),
        (b"[" * 5_000, None),
        (b'{"configTable":{"a":{"b":"c","d":1},"e":"f","g":{"h":null}}}', {"b": "c"}),
    ],
)
def test_a_damaged_file_is_put_aside_and_said_and_what_can_be_read_is_there(
    tmp_path: Path,
    content: bytes,
    readable: dict[str, str] | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "kvConfig.json").write_bytes(content)
    kept = KeyValues(tmp_path)
    assert kept.namespace("a") == readable
    [aside] = tmp_path.glob("kvConfig.json.damaged-*")
    assert aside.read_bytes() == content
    [line] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert aside.name in line.getMessage()
    asyncio.run(put_all(kept, "new"))
    assert KeyValues(tmp_path).get("space", "new") == "value of new"
    assert aside.exists()


def test_what_a_crash_left_half_written_is_removed(tmp_path: Path) -> None:
    asyncio.run(put_all(KeyValues(tmp_path), "key"))
    (tmp_path / f"{kv.TEMPORARY}abc").write_bytes(b"{")
    assert KeyValues(tmp_path).get("space", "key") == "value of key"
    assert [path.name for path in tmp_path.iterdir()] == ["kvConfig.json"]


def test_hundreds_of_changes_at_once_are_all_there_after_a_kill(tmp_path: Path) -> None:
    with RunningServer(tmp_path, rocketmq=True) as server:

        def change(number: int) -> list[int]:
            client = Client(server.address("namesrv"))
            opaques = [
                client.send(100, {"namespace": "N", "key": f"{number}-{each}", "value": "v" * 500})
                for each in range(CHANGES_EACH)
            ]
            opaques.append(client.send(102, {"namespace": "N", "key": f"{number}-0"}))
            codes = [client.answer(opaque).code for opaque in opaques]
            client.socket.close()
            return codes

        with ThreadPoolExecutor(CONNECTIONS) as threads:
            codes = [code for each in threads.map(change, range(CONNECTIONS)) for code in each]
        assert codes == [0] * (CONNECTIONS * (CHANGES_EACH + 1))
        server.kill()
        server.restart()
        client = Client(server.address("namesrv"))
        table = json.loads(bytes(client.ask(219, {"namespace": "N"}).body))["table"]
        assert len(table) == CONNECTIONS * (CHANGES_EACH - 1)
        client.socket.close()


def test_a_damaged_file_keeps_no_one_from_starting(tmp_path: Path) -> None:
    with RunningServer(tmp_path, rocketmq=True) as server:
        server.stop()
        (server.data_dir / "kvConfig.json").write_text('{"configTable":{')
        server.restart()
        client = Client(server.address("namesrv"))
        asked = {"namespace": "N", "key": "k"}
        assert client.ask(101, asked).code == ResponseCode.QUERY_NOT_FOUND
        assert client.ask(100, {**asked, "value": "v"}).code == 0
        client.socket.close()
        assert "key-value file is damaged" in server.log
