"""The load of the SDK's benchmark says what it did."""

from collections.abc import Iterator

import pytest
from bench.sdk import send as sdk
from tests.gateway.server import RunningServer


@pytest.fixture(scope="module")
def namesrv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RunningServer(tmp_path_factory.mktemp("sdk-bench"), rocketmq=True) as server:
        yield "{}:{}".format(*server.address("namesrv"))


@pytest.mark.parametrize(
    ("mode", "number", "loop"),
    [("one", 1, "asyncio"), ("many", 64, "uvloop"), ("batch", 100, "asyncio")],
)
def test_a_load_tells_its_rate(namesrv: str, mode: str, number: int, loop: str) -> None:
    rate, micros = sdk.python(namesrv, "smoke", 0.2, mode, number, loop)
    assert rate > 0
    assert (micros > 0) == (mode == "one")


@pytest.mark.java
@pytest.mark.long
def test_every_case_is_measured_for_every_client() -> None:
    report = sdk.run(sdk.QUICK)
    assert report.samples.keys() == {sdk.ONE, sdk.ONE_MEDIAN, sdk.MANY, sdk.BATCHES}
    for case in report.samples.values():
        assert case.keys() == {sdk.PYTHON, sdk.UVLOOP, sdk.JAVA}
    assert [bar.name for bar in report.bars] == ["64 in flight", "batches of 100"]
