"""The page on statistics names what the code has."""

import re
from pathlib import Path

from tests.gateway.remoting.statistics.test_broker import CountingWorld

from rockgate.gateway.remoting.statistics import sets
from rockgate.gateway.remoting.statistics.series import SNAPSHOTS_MAX

PAGE = Path(__file__).parents[4] / "docs" / "internals" / "statistics.md"


def test_the_page_lists_every_set_and_no_other() -> None:
    table = PAGE.read_text().split("<!-- sets:")[1].split("<!-- end -->")[0]
    named = re.findall(r"^\| `([A-Z0-9_]+)` \|", table, re.MULTILINE)
    world = CountingWorld()
    known = [*sets.TOPIC_SETS, *sets.QUEUE_SETS, sets.PUT_LATENCY, *sets.GROUP_SETS]
    known += [*world.statistics.derived_names(), *sets.BEHIND_SETS]
    assert named == known


def test_the_page_has_the_windows() -> None:
    windows = re.findall(r"^\| (?:minute|hour|day) \| [^|]+ \| (\d+) \|", PAGE.read_text(), re.M)
    assert tuple(map(int, windows)) == SNAPSHOTS_MAX
