"""kafkajs, unmodified, against the server: the behaviours of compat-tests/behaviours."""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviours.administering import Administering
from behaviours.bringing import node_program, pinned
from behaviours.delaying import Delaying
from behaviours.grouping import Grouping
from behaviours.program import ProgramDriver
from behaviours.reading import Reading
from behaviours.securing import Securing
from behaviours.surviving import Surviving
from behaviours.transacting import Transacting
from behaviours.writing import Writing

HERE = Path(__file__).resolve().parent


@pytest.mark.long
class TestKafkaJs(
    Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving, Securing
):
    client = "kafkajs " + pinned(HERE / "package.json", r'"kafkajs": "([^"]+)"')
    driver = ProgramDriver(
        lambda: node_program(HERE, "program.js"),
        codecs=("none", "gzip", "snappy"),
        why_not="kafkajs has no lz4 and no zstd of its own; the packages for them are compiled",
        sends_null_headers=False,
        cannot={"static_member": "kafkajs has no static members"},
    )
