"""The gates every test passes; they are defined in tests/gates.py."""

from tests.gates import java, pytest_collection_modifyitems, pytest_runtest_setup

__all__ = ["java", "pytest_collection_modifyitems", "pytest_runtest_setup"]
