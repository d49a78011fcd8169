"""franz-go, unmodified, against the server: the behaviours of compat-tests/behaviours."""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviours.administering import Administering
from behaviours.bringing import go_program, pinned
from behaviours.consumer_protocol import ConsumerProtocol
from behaviours.delaying import Delaying
from behaviours.grouping import Grouping
from behaviours.program import ProgramDriver
from behaviours.reading import Reading
from behaviours.securing import Securing
from behaviours.share_groups import ShareGroups
from behaviours.surviving import Surviving
from behaviours.transacting import Transacting
from behaviours.writing import Writing

HERE = Path(__file__).resolve().parent


@pytest.mark.long
class TestFranzGo(
    Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving, Securing
):
    driver = ProgramDriver(lambda: go_program(HERE))
    client = "franz-go " + pinned(HERE / "go.mod", r"twmb/franz-go v(\S+)")


@pytest.mark.long
class TestConsumerProtocol(ConsumerProtocol):
    driver = ProgramDriver(lambda: go_program(HERE))
    client = TestFranzGo.client


@pytest.mark.long
class TestShareGroups(ShareGroups):
    driver = ProgramDriver(lambda: go_program(HERE))
    client = TestFranzGo.client
