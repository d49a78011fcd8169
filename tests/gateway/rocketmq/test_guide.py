"""docs/guide/rocketmq-cluster.md works: all of it is run, in order, against a real cluster."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from bench.peers.rocketmq import tool_command
from tests.gateway.rocketmq.cluster import gateway, two_masters
from tests.house.markdown import blocks
from tests.house.snippets import CLUSTER, guides, run_block

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.mark.parametrize("page", guides(CLUSTER), ids=str)
def test_everything_on_the_guide_runs(page: Path, tmp_path: Path) -> None:
    with two_masters() as masters, gateway(masters.name_server) as kafka:
        command = shlex.join(tool_command([], tmp_path / "tools", None))
        mqadmin = tmp_path / "mqadmin"
        mqadmin.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        mqadmin.chmod(0o755)
        for block in blocks(page):
            if "run" not in block.words:
                continue
            text = block.text.replace("127.0.0.1:9876", masters.name_server)
            text = text.replace("127.0.0.1:9092", kafka)
            shell = f"PATH={tmp_path}:$PATH\n" if block.language == "sh" else ""
            printed = run_block(block, shell + text, tmp_path)
            if "mqadmin" in block.text:
                assert "update broker config success" in printed
