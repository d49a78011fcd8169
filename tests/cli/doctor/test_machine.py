import resource

import pytest

from rockgate.cli.doctor import machine

MIB = 1 << 20


def test_the_machine_of_the_tests_has_an_interpreter_and_a_clock() -> None:
    checks = [each.check for each in machine.check()]
    assert checks == ["python", "open files", "memory", "clock"]


@pytest.mark.parametrize(
    ("limit", "status"), [(1024, "warning"), (65_536, "ok"), (resource.RLIM_INFINITY, "ok")]
)
def test_few_open_files_are_worth_a_warning(limit: int, status: str) -> None:
    assert machine.open_files(limit).status == status


@pytest.mark.parametrize(("available", "status"), [(100 * MIB, "warning"), (600 * MIB, "ok")])
def test_little_memory_is_worth_a_warning(available: int, status: str) -> None:
    assert machine.memory({"MemAvailable": available}).status == status


def test_what_a_system_does_not_say_is_no_warning() -> None:
    assert machine.memory({}).status == "ok"
    assert machine.clock(None).status == "ok"


@pytest.mark.parametrize(("state", "status"), [(0, "ok"), (1, "ok"), (5, "warning")])
def test_a_clock_that_nobody_synchronizes_is_worth_a_warning(state: int, status: str) -> None:
    assert machine.clock(state).status == status
