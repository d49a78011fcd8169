"""Frames recorded between RocketMQ 5.5.0's Java client and broker, with their meaning."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "golden" / "remoting"


@dataclass(frozen=True)
class Golden:
    """One recorded frame: `frame` is all of it, including its length."""

    request: str
    request_code: int
    said: dict[str, Any]
    frame: bytes

    @property
    def is_answer(self) -> bool:
        return bool(self.said["kind"] == "answer")

    @property
    def inner(self) -> memoryview:
        return memoryview(self.frame)[4:]

    def __str__(self) -> str:
        return f"{self.request}-{self.said['kind']}-{self.said['encoding']}-{self.said['code']}"


def load() -> list[Golden]:
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found += [
            Golden(content["request"], content["code"], said, bytes.fromhex(said["hex"]))
            for said in content["frames"]
        ]
    assert found
    return found


FRAMES = load()


def requests(*codes: int) -> list[Golden]:
    return [each for each in FRAMES if each.request_code in codes and not each.is_answer]


def answers(*codes: int) -> list[Golden]:
    return [each for each in FRAMES if each.request_code in codes and each.is_answer]
