"""The gates every test passes; they are defined in tests/gates.py."""

from hypothesis import HealthCheck, settings
from tests.gates import java, pytest_collection_modifyitems, pytest_runtest_setup

__all__ = ["java", "pytest_collection_modifyitems", "pytest_runtest_setup"]

# A slow machine fails no property. For the rest hypothesis' own profile stands: with CI set, each
# test has the same examples every time.
settings.register_profile(
    "rockgate", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rockgate")
