"""Fixtures of the pipeline tests: the Spark session, a server, and a teller."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.gateway.server import RunningServer
from tests.spark import shared_session

from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark.kafka import Cluster


@pytest.fixture
def spark(java: object) -> SparkSession:
    return shared_session()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all; at the end it must stop cleanly, without a traceback."""
    with RunningServer(tmp_path_factory.mktemp("pipeline")) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture
def cluster(server: RunningServer) -> Cluster:
    return Cluster(bootstrap=server.bootstrap)


@pytest.fixture
def told() -> io.StringIO:
    """The teller's output."""
    return io.StringIO()


@pytest.fixture
def reporter(told: io.StringIO) -> Reporter:
    return Reporter("test", out=told)
