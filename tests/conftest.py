"""The gates for every test; tests/gates.py defines them."""

from hypothesis import HealthCheck, settings
from tests.gates import java, pytest_collection_modifyitems, pytest_runtest_setup

__all__ = ["java", "pytest_collection_modifyitems", "pytest_runtest_setup"]

# A slow machine fails no property. Otherwise hypothesis' own profile applies: with CI set, each
# test always has the same examples.
settings.register_profile(
    "rockgate", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rockgate")
