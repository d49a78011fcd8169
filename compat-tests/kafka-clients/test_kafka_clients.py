"""Apache Kafka's Java client, unmodified, against the server: the behaviours."""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviours.administering import Administering
from behaviours.bringing import java_program
from behaviours.delaying import Delaying
from behaviours.grouping import Grouping
from behaviours.program import ProgramDriver
from behaviours.reading import Reading
from behaviours.surviving import Surviving
from behaviours.transacting import Transacting
from behaviours.writing import Writing
from bench.peers.jars import pinned_version

HERE = Path(__file__).resolve().parent
DRIVERS = {
    "v3": ProgramDriver(lambda: java_program(HERE, "v3", "Program")),
    "v4": ProgramDriver(lambda: java_program(HERE, "v4", "Program", "calls")),
}

pytestmark = pytest.mark.java


class TestKafkaClients4(
    Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving
):
    driver = DRIVERS["v4"]
    client = f"kafka-clients {pinned_version(HERE / 'v4' / 'pom.xml')}"


@pytest.mark.long
class TestKafkaClients3(
    Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving
):
    driver = DRIVERS["v3"]
    client = f"kafka-clients {pinned_version(HERE / 'v3' / 'pom.xml')}"
