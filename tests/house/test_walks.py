"""The page of walks says which files a request passes through; a trace finds no other."""

import re
from pathlib import Path

from tests.house import walks

LINK = re.compile(r"^1\. \[([^]]+)\]\(\.\./([^)]+)\)$", re.MULTILINE)
TRIES = 3


def on_page() -> dict[str, list[str]]:
    parts = walks.PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.partition("\n")[0]: [file for file, _ in LINK.findall(part)] for part in parts}


async def test_no_walk_passes_through_a_file_that_its_page_does_not_name(tmp_path: Path) -> None:
    page = on_page()
    longer: dict[str, set[str]] = {}
    for number in range(TRIES):
        found = {walk.name: walk.files for walk in await walks.walks(tmp_path / str(number))}
        assert list(found) == list(page)
        more = {name: set(files) - set(page[name]) for name, files in found.items()}
        # On a busy machine the server's own timers may fall into every round of one trace.
        longer = {name: files & longer.get(name, files) for name, files in more.items()}
        if not any(longer.values()):
            return
    raise AssertionError(f"{longer}; if so it must be: python -m tests.house.walks")


def test_the_page_says_how_many_files_each_walk_has() -> None:
    text = walks.PAGE.read_text(encoding="utf-8")
    for name, files in on_page().items():
        part = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert f": {len(files)} files." in part
