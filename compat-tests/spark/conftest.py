"""Fixtures of the tests of Spark as a client: the session, and a topic read as rows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.spark import shared_session


@pytest.fixture
def spark(java: object) -> SparkSession:
    return shared_session()
