import itertools

import pytest
from tests.waiting import until, wait_until


def test_waiting_ends_as_soon_as_the_condition_holds() -> None:
    turns = itertools.count()
    wait_until(lambda: next(turns) == 3, "the fourth look")
    assert next(turns) == 4


def test_waiting_in_vain_says_what_was_waited_for() -> None:
    with pytest.raises(AssertionError, match="waited 0 s in vain until pigs fly"):
        wait_until(lambda: False, "pigs fly", timeout_s=0)


async def test_a_coroutine_waits_the_same_way() -> None:
    turns = itertools.count()
    await until(lambda: next(turns) == 3, "the fourth look")
    with pytest.raises(AssertionError, match="until pigs fly"):
        await until(lambda: False, "pigs fly", timeout_s=0)
