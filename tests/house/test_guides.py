"""The guides work: every program and command on them is run, in order, against one server.

Those that need Java, Spark or a RocketMQ cluster are run by compat-tests/rocketmq-java,
tests/pipeline and tests/gateway/rocketmq.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.gateway.server import RunningServer
from tests.house.markdown import Block, blocks, links, pages
from tests.house.snippets import (
    BY_HAND,
    GUIDES,
    SECURED,
    guides,
    missing_headers,
    run_in_guide,
    secured_server,
)

PROGRAMS = {"sh", "bash", "python", "java"}
# What starts the server itself, sets the machine up, or leaves things as they are.
HANDED = re.compile(
    r"(git clone|cd|make|rockgate (?:serve|gateway)|\. \.venv/bin/activate|pip install|#)\b.*|#.*"
)
SOURCE_SUFFIXES = (".py", ".java", ".toml")
GUIDE_BLOCKS = [block for page in pages() if page.parent == GUIDES for block in blocks(page)]


@pytest.mark.parametrize("page", guides(), ids=str)
def test_everything_on_a_guide_runs(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    setting_up = next((each for each in blocks(page) if SECURED in each.words), None)
    if setting_up is None:
        made = RunningServer(tmp_path, rocketmq=True)
    else:
        made = secured_server(setting_up, folder)
    with made as server:
        printed = ""
        for block in blocks(page):
            if "run" in block.words and SECURED not in block.words:
                printed += run_in_guide(block, folder, server)
            elif "output" in block.words:
                assert missing_headers(block, printed) == []
        server.stop_cleanly()


@pytest.mark.parametrize("block", [b for b in GUIDE_BLOCKS if b.language in PROGRAMS], ids=str)
def test_a_program_on_a_guide_is_run_unless_it_sets_the_machine_up(block: Block) -> None:
    assert "run" in block.words or BY_HAND in block.words
    if BY_HAND in block.words:
        lines = [line.strip() for line in block.text.replace("\\\n", " ").splitlines()]
        assert [line for line in lines if line and not HANDED.fullmatch(line)] == []


@pytest.mark.parametrize("page", [p for p in pages() if p.parent == GUIDES], ids=str)
def test_a_guide_does_not_send_its_reader_into_the_source(page: Path) -> None:
    assert [to for to in links(page) if to.endswith((*SOURCE_SUFFIXES, "/"))] == []
