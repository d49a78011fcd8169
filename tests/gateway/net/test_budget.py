from rockgate.gateway.net.budget import Budget


def test_those_who_wait_are_woken_once_when_a_quarter_is_free() -> None:
    woken: list[str] = []

    def first() -> None:
        woken.append("first")

    def second() -> None:
        woken.append("second")

    budget = Budget(100, lambda: None)
    budget.take(150)
    budget.incomplete = 0
    assert budget.is_spent
    budget.wait(first)
    budget.wait(first)
    budget.wait(second)
    budget.forget(second)
    budget.give(60)
    assert woken == [] and not budget.is_spent
    budget.give(15)
    assert woken == ["first"]
    budget.give(75)
    assert woken == ["first"]


def test_twice_too_much_calls_for_help_each_time() -> None:
    calls: list[int] = []
    budget = Budget(100, lambda: calls.append(budget.used))
    budget.take(200)
    assert calls == []
    budget.take(1)
    budget.take(1)
    assert calls == [201, 202]


def test_one_who_waits_again_while_being_woken_is_kept_for_the_next_time() -> None:
    woken: list[int] = []

    def again() -> None:
        woken.append(budget.used)
        budget.wait(again)

    budget = Budget(100, lambda: None)
    budget.take(150)
    budget.incomplete = 0
    budget.wait(again)
    budget.give(100)
    assert woken == [50]
    budget.give(25)
    assert woken == [50, 25]


def test_those_who_wait_continue_once_only_what_is_not_whole_is_left() -> None:
    woken: list[str] = []
    budget = Budget(100, lambda: None, frame_bytes_max=200)
    budget.take(110)
    budget.take(50)
    budget.incomplete -= 50
    budget.wait(lambda: woken.append("woken"))
    budget.give(49)
    assert woken == []
    budget.give(1)
    assert woken == ["woken"] and budget.is_spent


def test_three_quarters_are_for_what_is_not_whole_and_one_request_always_has_room() -> None:
    calls: list[int] = []
    budget = Budget(100, lambda: None, lambda: calls.append(budget.incomplete))
    budget.take(75)
    assert calls == []
    budget.take(1)
    assert calls == [76]
    alone = Budget(100, lambda: None, lambda: calls.append(-1), frame_bytes_max=150)
    alone.take(154)
    assert calls == [76]
