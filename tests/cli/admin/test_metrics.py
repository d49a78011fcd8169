import asyncio
from pathlib import Path

import pytest
from tests.gateway.server import RunningServer

from rockgate.cli.admin.metrics import MetricsSource, fetch, read
from rockgate.cli.client.kafka.errors import Unreachable, Unusable
from rockgate.gateway.net.address import Address


def test_samples_are_summed_by_name_and_by_label() -> None:
    page = read(
        '# HELP a words\n# TYPE a counter\na{topic="x",kind="1"} 2\na{topic="x",kind="2"} 3.5\n'
        'a{topic="y"} 1e2\nb 7\n'
    )
    assert page.total("a", "b") == 112.5
    assert page.by("a", "topic") == {"x": 5.5, "y": 100.0}
    assert page.value("b") == 7
    assert page.value("c") is None


def test_a_label_keeps_what_was_escaped() -> None:
    page = read('a{topic="q\\"u,o={te}\\\\n\\n"} 1\n')
    assert page.by("a", "topic") == {'q"u,o={te}\\n\n': 1.0}


@pytest.mark.parametrize("line", ["<html>", "a", "a b c d", "a{x} ", "a one"])
def test_what_is_no_sample_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        read(line)


def test_a_server_s_own_page_is_read(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server:
        source = MetricsSource(address=Address(*server.address("http")))
        page = asyncio.run(fetch(source, 10))
        assert page.value("rockgate_topics") is not None
        assert page.total("rockgate_segment_bytes") > 0
        kafka = MetricsSource(address=Address(*server.address("kafka")))
        with pytest.raises((Unreachable, Unusable)):
            asyncio.run(fetch(kafka, 2))
        server.stop_cleanly()
    with pytest.raises(Unreachable, match="Cannot read http://127"):
        asyncio.run(fetch(source, 2))
