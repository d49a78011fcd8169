import re

from tests.gateway.fakes import HandClock

from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.gateway.telemetry.loop import LoopWatch
from rockgate.gateway.telemetry.process import ProcessSource, memory_bytes


def test_the_process_tells_of_itself() -> None:
    page = Exposition()
    list(ProcessSource(LoopWatch(HandClock()), 1234.5)(page))
    text = page.text()
    assert "process_start_time_seconds 1234.5\n" in text
    for name in (
        "process_cpu_seconds_total",
        "process_open_fds",
        "rockgate_anonymous_memory_bytes",
    ):
        found = re.search(rf"^{name} (\S+)$", text, flags=re.M)
        assert found is not None and float(found[1]) > 0
    assert re.search(r'^rockgate_info\{version="[^"]+"\} 1$', text, flags=re.M)


def test_anonymous_memory_is_a_part_of_what_is_resident() -> None:
    found = memory_bytes()
    assert found is not None
    resident, anonymous = found
    assert 0 < anonymous <= resident
